//! Paths of the host that an audited program sees, and paths that it may write.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::{Audit, Audited, open_directory};
use crate::needs_sandbox;

/// Opens a path as Python does and prints the name of the errno, or `ok`.
fn open(path: &Path, mode: &str) -> Audit {
    let program = "import errno, sys\ntry: open(sys.argv[1], sys.argv[2]); print('ok')\nexcept OSError as e: print(errno.errorcode[e.errno])";
    Audit::of(["/usr/bin/python3", "-c", program])
        .argument(path)
        .argument(mode)
}

impl Audit {
    fn argument(mut self, argument: impl AsRef<std::ffi::OsStr>) -> Self {
        self.program.push(argument.as_ref().to_owned());
        self
    }
}

#[track_caller]
fn assert_says(audited: &Audited, word: &str) {
    audited.assert_printed(0, &format!("{word}\n"));
}

#[test]
fn what_is_not_shown_is_not_there_and_what_was_asked_for_can_be_read_and_not_written() {
    needs_sandbox!();
    let directory = open_directory("/var/tmp");
    let file = directory.path().join("file");
    fs::write(&file, "content").unwrap();
    // The mode permits writing, so that only the mount can prevent it.
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    let read = || format!("--read={}", directory.path().display());
    assert_says(&open(&file, "r").run(), "ENOENT");
    assert_says(&open(&file, "r").option(read()).run(), "ok");
    assert_says(
        &open(&file, "r").option(read()).as_ordinary_user().run(),
        "ok",
    );
    assert_says(&open(&file, "a").option(read()).run(), "EROFS");
    assert_says(
        &open(&file, "r")
            .option(format!("--read={}", file.display()))
            .run(),
        "ok",
    );
    assert_eq!(fs::read(&file).unwrap(), b"content");
}

#[test]
fn the_current_directory_is_seen_only_where_it_was_asked_for() {
    needs_sandbox!();
    let directory = open_directory("/var/tmp");
    fs::write(directory.path().join("note"), "a note\n").unwrap();
    let audit = || Audit::shell("pwd; cat note").in_directory(directory.path());
    let hidden = audit().run();
    hidden.assert_printed(1, "/home/work\n");
    let shown = audit().option("--read=.").run();
    shown.assert_printed(0, &format!("{}\na note\n", directory.path().display()));
}

#[test]
fn a_script_beside_the_caller_is_shown_alone() {
    needs_sandbox!();
    let directory = open_directory("/var/tmp");
    let script = directory.path().join("script");
    fs::write(&script, "#!/bin/sh\nls /client\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let audit = || Audit::of(["./script"]).in_directory(directory.path());
    audit().run().assert_printed(0, "script\n");
    // With another working directory, the program's own directory is mounted together with it.
    fs::write(&script, "#!/bin/sh\nls \"$(dirname \"$0\")\"\n").unwrap();
    let elsewhere = Audit::of([script.as_os_str()]).in_directory("/");
    elsewhere.run().assert_printed(0, "script\n");
}

#[test]
fn a_program_that_is_called_by_a_link_keeps_that_name_where_its_directory_is_not_shown() {
    needs_sandbox!();
    let directory = open_directory("/var/tmp");
    let at = |name: &str| directory.path().join(name);
    fs::write(at("script"), "#!/bin/sh\necho $0\n").unwrap();
    fs::set_permissions(at("script"), fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink("script", at("called")).unwrap();
    std::os::unix::fs::symlink("/usr/bin/python3", at("python")).unwrap();
    let script = Audit::of(["./called"]).in_directory(directory.path());
    script.run().assert_printed(0, "/client/called\n");
    let line = "import os, sys; print(sys.prefix, os.getcwd())";
    let python = Audit::of(["./python", "-c", line]).in_directory(directory.path());
    python.run().assert_printed(0, "/usr /home/work\n");
}

#[test]
fn nothing_of_the_users_own_is_shown_by_itself() {
    needs_sandbox!();
    let line = "ls -A /home /root /var /opt /srv /tmp /run 2>/dev/null; ls -A /etc; id -un";
    let audited = Audit::shell(line).run();
    let seen: Vec<_> = audited.stdout.lines().collect();
    for hidden in ["shadow", "machine-id", "ssh", "/root:", "/var:"] {
        assert!(!seen.contains(&hidden), "{hidden} in {seen:?}");
    }
    assert!(
        seen.contains(&"passwd") && seen.contains(&"sandbox"),
        "{seen:?}"
    );
}

#[test]
fn what_is_made_writable_is_written_on_the_host_and_nothing_in_it_can_be_run() {
    needs_sandbox!();
    let directory = open_directory("/var/tmp");
    let write = || format!("--write={}", directory.path().display());
    let file = directory.path().join("made");
    let at = |line: &str| Audit::shell(&line.replace("HERE", directory.path().to_str().unwrap()));
    at("echo text > HERE/made").run().assert_code(2);
    assert!(!file.exists());
    for user in [
        at("echo text > HERE/made").option(write()),
        at("echo more >> HERE/ours")
            .option(write())
            .as_ordinary_user(),
    ] {
        user.run().assert_code(0);
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "text\n");
    let line = "mkdir HERE/d && cp /bin/true HERE/d/true && mv HERE/d/true HERE/program && rmdir HERE/d; HERE/program";
    at(line).option(write()).run().assert_code(126);
    assert!(directory.path().join("program").is_file());
    at("ln -s /etc/passwd HERE/link; mkfifo HERE/fifo")
        .option(write())
        .run()
        .assert_code(1);
    assert!(
        !directory.path().join("fifo").exists(),
        "no FIFO by which to talk to a process outside"
    );
}

/// Every call that sets a mode, in the directory of the first argument with the mode bits of the second.
const MODES: &str = r#"
import ctypes, errno, os, sys
where, bits = sys.argv[1], int(sys.argv[2], 8)
libc = ctypes.CDLL(None, use_errno=True)
def raw(number, *arguments):
    result = libc.syscall(ctypes.c_long(number), *arguments)
    if result < 0: raise OSError(ctypes.get_errno(), "")
    return result
def path(name): return os.path.join(where, name)
plain = path("plain-%o" % bits)
open(plain, "w").close()
directory = os.open(where, os.O_RDONLY)
mode = 0o755 | bits
tries = [
    ("chmod", lambda: os.chmod(plain, mode)),
    ("fchmod", lambda: os.fchmod(os.open(plain, os.O_RDONLY), mode)),
    ("fchmodat", lambda: os.chmod(os.path.basename(plain), mode, dir_fd=directory)),
    ("fchmodat2", lambda: raw(452, directory, os.path.basename(plain).encode(), mode, 0)),
    ("openat", lambda: os.open(path("open-%o" % bits), os.O_CREAT | os.O_WRONLY, mode)),
    ("O_TMPFILE", lambda: os.open(where, os.O_TMPFILE | os.O_RDWR, mode)),
    ("mknod", lambda: os.mknod(path("node-%o" % bits), mode | 0o100000)),
    ("mkdir", lambda: os.mkdir(path("dir-%o" % bits), mode)),
]
if os.uname().machine == "x86_64":
    tries.append(("open", lambda: raw(2, path("old-%o" % bits).encode(), 0o101, mode)))
    tries.append(("creat", lambda: raw(85, path("creat-%o" % bits).encode(), mode)))
for name, attempt in tries:
    try: attempt(); print(name, "ok")
    except OSError as error: print(name, errno.errorcode.get(error.errno, error.errno))
how = (ctypes.c_uint64 * 3)(0o101, mode, 0)
try: raw(437, directory, b"how", how, 24); print("openat2 ok")
except OSError as error: print("openat2", errno.errorcode[error.errno])
"#;

#[test]
fn no_file_on_the_host_gets_a_set_user_or_set_group_id() {
    needs_sandbox!();
    for as_ordinary_user in [false, true] {
        let directory = open_directory("/var/tmp");
        let tried = |bits: &str| {
            let audit = Audit::of(["/usr/bin/python3", "-c", MODES])
                .argument(directory.path())
                .argument(bits)
                .option(format!("--write={}", directory.path().display()));
            if as_ordinary_user {
                audit.as_ordinary_user().run()
            } else {
                audit.run()
            }
        };
        for (bits, word) in [("4000", "EPERM"), ("2000", "EPERM"), ("0", "ok")] {
            let audited = tried(bits);
            audited.assert_code(0);
            let said: Vec<&str> = audited.stdout.lines().collect();
            assert!(said.len() >= 9, "{}", audited.stderr);
            let (openat2, others) = said.split_last().unwrap();
            assert_eq!(*openat2, "openat2 ENOSYS");
            for line in others {
                assert!(line.ends_with(&format!(" {word}")), "{bits}: {line}");
            }
        }
        let mut made = 0;
        for entry in fs::read_dir(directory.path()).unwrap() {
            let mode = entry.unwrap().metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o6000, 0);
            made += usize::from(mode & 0o777 == 0o755);
        }
        assert!(made >= 4, "the same with another mode is made");
    }
}

#[test]
fn a_directory_that_the_programs_user_may_not_write_is_refused_beforehand() {
    needs_sandbox!();
    let directory = open_directory("/var/tmp");
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let write = format!("--write={}", directory.path().display());
    for audit in [Audit::of(["true"]), Audit::of(["true"]).as_ordinary_user()] {
        let audited = audit.option(&write).run();
        audited.assert_code(125);
        assert!(
            audited.stderr.contains("may not write"),
            "{}",
            audited.stderr
        );
    }
}

#[test]
fn a_writable_directory_within_one_that_can_be_read_is_the_only_part_that_is_written() {
    needs_sandbox!();
    let directory = open_directory("/var/tmp");
    let inner = directory.path().join("out");
    fs::create_dir(&inner).unwrap();
    fs::set_permissions(&inner, fs::Permissions::from_mode(0o777)).unwrap();
    let audit = |line: &str| {
        Audit::shell(line)
            .in_directory(directory.path())
            .option("--read=.")
            .option("--write=out")
    };
    audit("echo in > out/file && cat out/file")
        .run()
        .assert_printed(0, "in\n");
    audit("echo in > file").run().assert_code(2);
    assert!(inner.join("file").exists() && !directory.path().join("file").exists());
}

#[test]
fn a_path_that_the_programs_user_may_not_read_is_refused_beforehand() {
    needs_sandbox!();
    if !crate::kit::is_root() {
        // For an ordinary user, the program has that user's rights.
        return;
    }
    let directory = open_directory("/var/tmp");
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let read = format!("--read={}", directory.path().display());
    for audit in [Audit::of(["true"]), Audit::of(["true"]).as_ordinary_user()] {
        let audited = audit.option(&read).run();
        audited.assert_code(125);
        assert!(
            audited.stderr.contains("may not read"),
            "{}",
            audited.stderr
        );
    }
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o711)).unwrap();
    Audit::of(["true"]).option(&read).run().assert_code(0);
}

#[test]
fn what_the_sandbox_has_of_its_own_is_not_hidden_by_the_hosts() {
    for path in ["/etc", "/home", "/", "/tmp", "/proc/self"] {
        let audited = Audit::of(["true"]).option(format!("--read={path}")).run();
        audited.assert_code(125);
        assert!(audited.stderr.contains("never shown"), "{}", audited.stderr);
    }
}

#[test]
fn a_missing_library_is_told_with_the_option_that_shows_it() {
    needs_sandbox!();
    let directory = open_directory("/var/tmp");
    let at = |name: &str| directory.path().join(name);
    fs::create_dir(at("bin")).unwrap();
    fs::write(at("answer.c"), "int answer(void) { return 42; }").unwrap();
    fs::write(
        at("main.c"),
        "int answer(void); int main(void) { return answer(); }",
    )
    .unwrap();
    compile(
        &["-shared", "-fPIC", "-o"],
        &[&at("libanswer.so"), &at("answer.c")],
    );
    let program = at("bin/program");
    compile(&["-o"], &[&program, &at("main.c"), &at("libanswer.so")]);
    let hidden = Audit::of([&program]).run();
    hidden.assert_code(127);
    let option = format!("--read {}", at("libanswer.so").display());
    let told: Vec<_> = hidden.stderr.split_whitespace().collect();
    assert!(told.join(" ").contains(&option), "{}", hidden.stderr);
    let shown = Audit::of([&program]).option(option.replace(' ', "="));
    shown.run().assert_code(42);
}

#[test]
fn a_link_to_everything_shows_nothing() {
    needs_sandbox!();
    let directory = open_directory("/var/tmp");
    for target in ["/", "/etc", "/home", "/proc/self/root"] {
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(target, &link).unwrap();
        for option in ["read", "write"] {
            let audited = Audit::of(["true"])
                .option(format!("--{option}={}", link.display()))
                .run();
            audited.assert_code(125);
            assert!(
                audited.stderr.contains("leads to"),
                "{target}: {}",
                audited.stderr
            );
        }
        fs::remove_file(&link).unwrap();
    }
}

#[test]
fn a_rule_behind_an_absolute_link_in_a_shown_tree_is_kept_there_and_nothing_is_made_on_the_host() {
    needs_sandbox!();
    let directory = open_directory("/var/tmp");
    let at = |name: &str| directory.path().join(name);
    let releases = open_directory("/var/tmp");
    let out = releases.path().join("out");
    fs::create_dir(&out).unwrap();
    fs::set_permissions(&out, fs::Permissions::from_mode(0o777)).unwrap();
    std::os::unix::fs::symlink(releases.path(), at("current")).unwrap();
    let line = "echo text > current/out/file && cat current/out/file; echo x > current/other";
    for audit in [Audit::shell(line), Audit::shell(line).as_ordinary_user()] {
        let audited = audit
            .in_directory(directory.path())
            .option("--read=.")
            .option("--write=current/out")
            .run();
        audited.assert_printed(2, "text\n");
        assert!(!releases.path().join("other").exists());
        fs::remove_file(out.join("file")).unwrap();
    }
}

#[test]
fn what_is_read_only_in_a_writable_directory_stays_so_by_every_name() {
    needs_sandbox!();
    let directory = open_directory("/var/tmp");
    let at = |name: &str| directory.path().join(name);
    for name in ["releases", "releases/1", "releases/2"] {
        fs::create_dir(at(name)).unwrap();
        fs::set_permissions(at(name), fs::Permissions::from_mode(0o777)).unwrap();
    }
    fs::write(at("releases/1/conf"), "kept\n").unwrap();
    fs::set_permissions(at("releases/1/conf"), fs::Permissions::from_mode(0o666)).unwrap();
    std::os::unix::fs::symlink(at("releases/1"), at("current")).unwrap();
    let program = "import errno, os
def tried(what, *names):
    try: what(*names); return 'ok'
    except OSError as e: return errno.errorcode[e.errno]
print(tried(open, 'releases/1/conf', 'a'), tried(os.unlink, 'releases/1/conf'),
      tried(os.rename, 'releases/1', 'releases/3'), tried(os.rename, 'releases/2', 'releases/4'),
      tried(os.rename, 'releases', 'moved'))";
    let audit = |rule: &str| {
        Audit::of(["/usr/bin/python3", "-c", program])
            .in_directory(directory.path())
            .option("--write=.")
            .option(rule)
    };
    let behind = audit("--read=current/conf").run();
    behind.assert_code(125);
    assert!(
        behind.stderr.contains("by another name"),
        "{}",
        behind.stderr
    );
    for audit in [
        audit("--read=releases/1/conf"),
        audit("--read=releases/1/conf").as_ordinary_user(),
    ] {
        assert_says(&audit.run(), "EROFS EBUSY EBUSY ok EBUSY");
        assert_eq!(fs::read(at("releases/1/conf")).unwrap(), b"kept\n");
        fs::rename(at("releases/4"), at("releases/2")).unwrap();
    }
    // Without the rule, each of these calls succeeds.
    let free = audit("--read=/usr");
    assert_says(&free.run(), "ok ok ok ok ok");
    assert!(at("moved/3").is_dir());
}

#[test]
fn a_directory_that_is_also_shown_with_its_programs_cannot_be_made_writable_by_another_name() {
    needs_sandbox!();
    let directory = open_directory("/var/tmp");
    let at = |name: &str| directory.path().join(name);
    fs::create_dir_all(at("opt/bin")).unwrap();
    fs::set_permissions(at("opt"), fs::Permissions::from_mode(0o777)).unwrap();
    std::os::unix::fs::symlink(at("opt"), at("wl")).unwrap();
    let program = at("opt/bin/program");
    fs::copy("/bin/true", &program).unwrap();
    let audit = |writable: &str| {
        Audit::of([&program]).option(format!("--write={}", at(writable).display()))
    };
    let refused = audit("wl").run();
    refused.assert_code(125);
    for name in [at("wl"), at("opt/bin")] {
        let name = name.display().to_string();
        assert!(refused.stderr.contains(&name), "{}", refused.stderr);
    }
    audit("opt").run().assert_code(0);
}

#[test]
fn a_path_with_any_byte_in_its_name_is_shown() {
    use std::os::unix::ffi::OsStrExt as _;
    needs_sandbox!();
    let directory = open_directory("/var/tmp");
    for name in [&b"a b"[..], b"a\tb", b"a\nb", b"a\\040b", b"a\xffb"] {
        let path = directory.path().join(std::ffi::OsStr::from_bytes(name));
        fs::create_dir(&path).unwrap();
        fs::write(path.join("file"), "content\n").unwrap();
        let mut option = std::ffi::OsString::from("--read=");
        option.push(&path);
        let audited = Audit::of(["/bin/cat"])
            .argument(path.join("file"))
            .option(option)
            .run();
        audited.assert_printed(0, "content\n");
    }
}

#[test]
fn a_program_is_found_by_a_path_that_climbs() {
    needs_sandbox!();
    let audited = Audit::of(["/usr/bin/../bin/true"]).run();
    audited.assert_code(0);
}

#[test]
fn a_report_goes_to_no_shown_tree_by_a_link_either() {
    needs_sandbox!();
    let directory = open_directory("/var/tmp");
    let shown = directory.path().join("shown");
    fs::create_dir(&shown).unwrap();
    fs::set_permissions(&shown, fs::Permissions::from_mode(0o777)).unwrap();
    fs::write(shown.join("report"), "mine").unwrap();
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(shown.join("report"), &link).unwrap();
    let audited = Audit::of(["true"])
        .option(format!("--write={}", shown.display()))
        .option(format!("--report=human={}", link.display()))
        .run();
    audited.assert_code(125);
    assert!(
        audited
            .stderr
            .contains("where this run writes a report or its evidence"),
        "{}",
        audited.stderr
    );
    assert_eq!(fs::read(shown.join("report")).unwrap(), b"mine");
}

/// Compiles with the compiler that links this project too. A program requests a library by the path given here.
fn compile(options: &[&str], files: &[&Path]) {
    let output = std::process::Command::new("cc")
        .args(options)
        .args(files)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    for file in files {
        let _ = fs::set_permissions(file, fs::Permissions::from_mode(0o755));
    }
}
