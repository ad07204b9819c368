//! Tests of the notified lookups.

use super::*;

#[test]
fn lookups_only_add_notifications() {
    for architecture in Architecture::ALL {
        let [without, with] = [Additions::default().client_filter(), with_lookups()]
            .map(|one| one.assemble(architecture));
        for number in 0..=LAST_REVIEWED + 1 {
            let has_it = |rule: &Rule| rule.call.number(architecture) == Some(number);
            let is_lookup = LOOKUPS.iter().any(has_it);
            for fill in FILLS {
                let call = Call::new(architecture.audit(), number, &[fill; 6]);
                match (run(&without, &call), run(&with, &call)) {
                    (Outcome::Allowed, Outcome::Notified) if is_lookup => {}
                    (before, after) => {
                        assert_eq!(before, after, "{architecture:?} {number}, {fill:#x}");
                    }
                }
            }
        }
    }
}

#[test]
fn each_lookup_is_notified_with_a_path_and_no_flag() {
    for rule in LOOKUPS {
        let found = everywhere(&with_lookups(), rule.call, &[3, 0x1000, 0, 0, 0, 0]);
        assert_eq!(found, Outcome::Notified, "{:?}", rule.call);
    }
}

/// Only mknod(2) and mknodat(2) are in both, because FIFOs are counted.
#[test]
fn only_mknod_is_in_both_table_and_lookups() {
    for rule in LOOKUPS {
        let twice = CLIENT.rules.iter().any(|other| other.call == rule.call);
        let makes_fifos = matches!(rule.call, SYS_mknod | SYS_mknodat);
        assert_eq!(twice, makes_fifos, "{:?}", rule.call);
    }
}

#[test]
fn descriptor_calls_are_no_lookups() {
    let empty = libc::AT_EMPTY_PATH as u64;
    for (call, arguments) in [
        (SYS_newfstatat, [3, 0x1000, 0x2000, empty, 0]),
        (SYS_statx, [3, 0x1000, empty, 0xFFF, 0x2000]),
        (SYS_faccessat2, [3, 0x1000, 4, empty, 0]),
        (SYS_fchownat, [3, 0x1000, 1, 1, empty]),
        (SYS_utimensat, [3, 0, 0, 0, 0]),
    ] {
        let of = |arguments: [u64; 5]| everywhere(&with_lookups(), call, &arguments);
        assert_eq!(of(arguments), Outcome::Allowed, "{call:?}");
        let path = arguments.map(|one| if one == empty { 0x100 } else { one.max(1) });
        assert_eq!(of(path), Outcome::Notified, "{call:?}");
    }
}
