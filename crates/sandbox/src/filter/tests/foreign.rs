//! Tests of calls by non-native interfaces.

use super::*;

// Values of linux/audit.h. Kernels of the supported architectures also run programs of the first two.
const AUDIT_ARCH_I386: u32 = 0x4000_0003;
const AUDIT_ARCH_ARM: u32 = 0x4000_0028;
const AUDIT_ARCH_RISCV64: u32 = 0xC000_00F3;

/// Lists the calls of another interface that the filter notifies; empty for a table without notifications.
fn notified(filter: &Filter, architecture: Architecture, audit: u32) -> Vec<u32> {
    let notifies = filter
        .rules
        .iter()
        .any(|rule| rule.action == Action::Notify);
    Interface::beside(architecture)
        .filter(|interface| notifies && interface.audit == audit)
        .flat_map(Interface::numbers)
        .collect()
}

#[test]
fn a_foreign_architecture_is_notified_or_killed() {
    for (filter, architecture) in programs() {
        let program = filter.assemble(architecture);
        let foreign = Architecture::ALL
            .into_iter()
            .filter(|other| *other != architecture)
            .map(Architecture::audit)
            .chain([AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_RISCV64]);
        for foreign in foreign {
            let notified = notified(&filter, architecture, foreign);
            for number in 0..=LAST_REVIEWED {
                let call = Call::new(foreign, number, &[]);
                let expected = if notified.contains(&number) {
                    Outcome::Notified
                } else {
                    Outcome::Killed
                };
                assert_eq!(run(&program, &call), expected, "{foreign:#x} {number}");
            }
        }
    }
}

#[test]
fn x32_numbers_do_not_exist() {
    for filter in [CLIENT, STUB] {
        let program = filter.assemble(X86_64);
        let notified = notified(&filter, X86_64, X86_64.audit());
        for number in (0..1024).map(|number| number | X32_BIT) {
            let expected = if notified.contains(&number) {
                Outcome::Notified
            } else {
                Outcome::Refused(Errno::ENOSYS)
            };
            let call = Call::new(X86_64.audit(), number, &[]);
            assert_eq!(run(&program, &call), expected, "{number:#x}");
        }
    }
}

#[test]
fn foreign_calls_have_names_where_they_are_notified() {
    for interface in Interface::beside(Architecture::OWN) {
        for number in interface.numbers() {
            assert!(ForeignCall::numbered(interface.audit, number).is_some());
        }
    }
    assert_eq!(ForeignCall::numbered(Architecture::OWN.audit(), 41), None);
    assert_eq!(ForeignCall::numbered(AUDIT_ARCH_RISCV64, 102), None);
}
