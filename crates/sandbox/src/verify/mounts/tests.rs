use super::*;
use crate::plan::BindKind;

const LINES: &[u8] = b"\
10 1 0:50 / / ro,nosuid,nodev shared:7 - tmpfs tmpfs rw,size=1024k
11 10 8:1 /data /p rw,nosuid,nodev,noexec - ext4 /dev/sda1 rw
12 11 8:1 /data/1/conf /p/1/conf ro,nosuid,nodev - ext4 /dev/sda1 rw
13 10 0:51 / /proc rw,nosuid,nodev,noexec - proc proc rw
";

fn bind(target: &str, inode: u64, access: Access) -> Bind {
    Bind {
        source: target.into(),
        target: target.into(),
        device: 1,
        inode,
        kind: BindKind::Directory,
        access,
    }
}

fn there(inode: u64, mount: u64) -> SeenBind {
    SeenBind::There {
        device: 1,
        inode,
        mount,
    }
}

/// Two rules: a writable tree, and a read-only file in it whose path leads through a link.
fn binds() -> Vec<Bind> {
    vec![
        bind("/p", 1, Access::Write),
        bind("/p/current/conf", 2, Access::ReadExecute),
    ]
}

fn found(lines: &[u8], seen: &[SeenBind]) -> Result<usize, String> {
    check(&parse_mounts(lines), true, seen, &binds())
}

#[test]
fn planned_mounts_are_counted_through_links() {
    assert_eq!(found(LINES, &[there(1, 11), there(2, 12)]), Ok(3));
}

#[test]
fn missing_or_wrong_planned_mount_is_found() {
    let lost = found(LINES, &[there(1, 11), there(2, 11)]).unwrap_err();
    assert!(lost.contains("/p/current/conf is mounted rw"), "{lost}");
    let other = found(LINES, &[there(1, 11), there(3, 12)]).unwrap_err();
    assert!(other.contains("another object than planned"), "{other}");
    let unreached = SeenBind::Unreached {
        errno: Errno::ENOENT as i32,
    };
    let absent = found(LINES, &[there(1, 11), unreached]).unwrap_err();
    assert_eq!(absent, "cannot open /p/current/conf: ENOENT");
    let unlisted = found(LINES, &[there(1, 11), there(2, 99)]).unwrap_err();
    assert!(
        unlisted.contains("on a mount that is not listed"),
        "{unlisted}"
    );
    assert!(found(LINES, &[there(1, 11)]).is_err());
}

#[test]
fn unplanned_or_wider_mount_is_found() {
    let seen = [there(1, 11), there(2, 12)];
    let with = |line: &[u8]| found(&[LINES, line].concat(), &seen);
    let below = b"14 11 8:2 / /p/sub rw,nosuid,nodev,noexec - ext4 /dev/sdb rw\n";
    assert_eq!(with(below), Ok(4));
    for line in [
        &b"14 10 8:2 / /x ro,nosuid,nodev,noexec - ext4 /dev/sdb rw\n"[..],
        b"14 12 8:2 / /p/1/conf/x rw,nosuid,nodev - ext4 /dev/sdb rw\n",
        b"14 11 8:2 / /p/sub rw,nosuid,nodev - ext4 /dev/sdb rw\n",
        b"14 10 8:2 / /process ro,nosuid,nodev - ext4 /dev/sdb rw\n",
        b"14 10 8:2 / /dev ro,nosuid,noexec - ext4 /dev/sdb rw\n",
    ] {
        let error = with(line).unwrap_err();
        assert!(error.ends_with("is not as planned"), "{error}");
    }
}

#[test]
fn malformed_line_is_an_error() {
    let broken = [LINES, b"15 10 8:2 /\n"].concat();
    let error = all_parsed(&broken, &parse_mounts(&broken)).unwrap_err();
    assert_eq!(error, "cannot parse a line of mountinfo");
    assert_eq!(all_parsed(LINES, &parse_mounts(LINES)), Ok(()));
}

#[test]
fn octal_escapes_are_decoded() {
    let line = b"1 0 8:1 / /a\\040b\\011c\\012d\\134e\xff\\x ro master:1 - ext4 - rw\n";
    let mounts = parse_mounts(line);
    let target = OsString::from_vec(b"/a b\tc\nd\\e\xff\\x".to_vec());
    assert_eq!(mounts[0].target, PathBuf::from(target));
    assert_eq!(mounts[0].kind, "ext4");
}

#[test]
fn terminals_of_another_instance_are_found() {
    let terminals = |options: &str, kind: &str| {
        let line = format!("14 10 0:52 / /dev/pts rw,nosuid,noexec - {kind} {kind} {options}\n");
        let lines = [LINES, line.as_bytes()].concat();
        found(&lines, &[there(1, 11), there(2, 12)])
    };
    assert_eq!(
        terminals("rw,mode=600,ptmxmode=666,max=64", "devpts"),
        Ok(4)
    );
    for (options, kind) in [
        ("rw,gid=5,mode=620,ptmxmode=000", "devpts"),
        ("rw,max=64", "tmpfs"),
    ] {
        let other = terminals(options, kind).unwrap_err();
        assert_eq!(other, format!("/dev/pts ({kind}) is not as planned"));
    }
}
