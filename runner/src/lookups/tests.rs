//! Hidden and denied paths on a host given as a map, and the lines that they fold into.

use std::collections::BTreeMap;
use std::time::Duration;

use model::case::Access;
use policy::may_be_shown;
use sandbox::plan::BindKind;

use super::*;
use crate::audit::Caller;

/// A host with these paths, their directories, and these links.
struct Host {
    objects: BTreeMap<PathBuf, HostObject>,
    /// The caller's directory, if the program does not start in it.
    directory: Option<PathBuf>,
}

impl Host {
    fn of(files: &[&str]) -> Self {
        let mut host = Self {
            objects: BTreeMap::new(),
            directory: None,
        };
        files
            .iter()
            .for_each(|path| host.add(path, HostObject::File));
        host
    }

    fn add(&mut self, path: &str, object: HostObject) {
        for above in Path::new(path).ancestors().skip(1) {
            self.objects
                .entry(above.to_owned())
                .or_insert(HostObject::Directory);
        }
        self.objects.insert(path.into(), object);
    }

    fn and(mut self, path: &str, object: HostObject) -> Self {
        self.add(path, object);
        self
    }

    fn link(self, path: &str, target: &str) -> Self {
        self.and(path, HostObject::Link(target.into()))
    }

    /// Compares `wanted` with a root that shows /usr, /lib as a link to /usr/lib, and the program as
    /// /client/tool.
    fn compare(&self, wanted: &[(&str, LookupKind)]) -> Vec<Lookup> {
        let comparison = self.compare_until(wanted, Instant::now() + Duration::from_secs(600));
        assert_eq!(comparison.uncompared, 0);
        comparison.lookups
    }

    fn compare_until(&self, wanted: &[(&str, LookupKind)], until: Instant) -> Comparison {
        let mut lookups = Lookups::default();
        for ((path, kind), at_us) in wanted.iter().zip(100..) {
            let wanted = Wanted {
                path: PathBuf::from(path),
                kind: *kind,
            };
            lookups.add(wanted, at_us);
        }
        let binds = [
            bind("/usr", "/usr"),
            bind("/usr/lib", "/lib"),
            bind("/opt/tool/bin/tool", "/client/tool"),
        ];
        let secrets = SecretScanner::new("runner-key-0123456789abcdef").unwrap();
        let caller = Caller {
            directory: self.directory.as_deref(),
            home: Some(Path::new("/data/home/user")),
        };
        let present = ["made/file", "gone"].map(|name| format!("/home/sandbox/{name}"));
        let probe = |path: &Path| self.objects.get(path).cloned();
        let comparison = compare(&lookups, &binds, &present, caller, &secrets, probe, until);
        for lookup in &comparison.lookups {
            if let Advice::Read(path) | Advice::Write(path) = &lookup.advice {
                assert!(may_be_shown(Path::new(path)), "{path} would be refused");
            }
        }
        comparison
    }

    fn advice(&self, path: &str, kind: LookupKind) -> Option<Advice> {
        let lookups = self.compare(&[(path, kind)]);
        assert!(lookups.len() <= 1, "{lookups:?}");
        lookups.into_iter().next().map(|lookup| lookup.advice)
    }
}

fn bind(source: &str, target: &str) -> Bind {
    Bind {
        source: source.into(),
        target: target.into(),
        device: 0,
        inode: 0,
        kind: BindKind::Directory,
        access: Access::ReadExecute,
    }
}

fn read(path: &str) -> Option<Advice> {
    Some(Advice::Read(path.into()))
}

fn write(path: &str) -> Option<Advice> {
    Some(Advice::Write(path.into()))
}

fn never(reason: Reason) -> Option<Advice> {
    Some(Advice::Never(reason))
}

use LookupKind::{Execute, List, Read, Write};

#[test]
fn what_the_host_has_and_the_program_is_not_shown_is_hidden() {
    let host = Host::of(&["/srv/data/x", "/usr/share/x"]);
    for kind in [Read, Execute] {
        assert_eq!(host.advice("/srv/data/x", kind), read("/srv/data/x"));
        assert_eq!(host.advice("/usr/share/x", kind), None, "shown");
        assert_eq!(
            host.advice("/lib/x", kind),
            None,
            "shown at another path, and not there"
        );
        assert_eq!(
            host.advice("/srv/data/y", kind),
            None,
            "the host has it not either"
        );
        assert_eq!(host.advice("/srv/data/x/y", kind), None, "below a file");
        assert_eq!(host.advice("srv/data/x", kind), None, "nobody knows where");
    }
}

#[test]
fn the_sandboxs_own_home_temporary_directory_and_proc_hide_nothing() {
    let host = Host::of(&["/home/sandbox/x", "/tmp/x", "/proc/77/maps", "/etc/passwd"])
        .and("/dev/null", HostObject::Closed);
    for path in [
        "/home/sandbox/made/file",
        "/tmp/y",
        "/dev/shm/x",
        "/dev/null",
    ] {
        assert_eq!(host.advice(path, Read), None, "{path}");
        assert_eq!(host.advice(path, Write), None, "{path}");
    }
    assert_eq!(host.advice("/client/package.json", Read), None);
    for path in [
        "/proc/77/maps",
        "/etc/passwd",
        "/",
        "/home",
        "/etc",
        "/client",
    ] {
        assert_eq!(host.advice(path, Read), None, "{path}");
    }
}

#[test]
fn file_that_the_host_has_below_tmp_is_absent_when_read() {
    let host = Host::of(&["/tmp/x"]);
    assert_eq!(host.advice("/tmp/x", Read), never(Reason::Absent));
    assert_eq!(host.advice("/tmp/x", Write), None);
    assert_eq!(host.advice("/tmp/y", Read), None);
}

#[test]
fn a_link_is_followed_as_far_as_it_is_shown() {
    let host = Host::of(&["/usr/bin/python3.11", "/opt/sdk/bin/cc"])
        .link("/usr/bin/python3", "/etc/alternatives/python3")
        .link("/etc/alternatives/python3", "/usr/bin/python3.11")
        .link("/usr/bin/python", "python3.11")
        .link("/usr/bin/cc", "../../opt/sdk/bin/cc")
        .link("/usr/bin/dangling", "/opt/nothing")
        .link("/usr/bin/loop", "loop");
    assert_eq!(
        host.advice("/usr/bin/python3", Read),
        read("/etc/alternatives")
    );
    assert_eq!(host.advice("/usr/bin/python", Read), None);
    assert_eq!(host.advice("/usr/bin/cc", Execute), read("/opt/sdk/bin"));
    assert_eq!(host.advice("/usr/bin/dangling", Read), None);
    assert_eq!(host.advice("/usr/bin/loop", Read), None);
}

#[test]
fn links_to_one_hidden_directory_are_one_line() {
    let host = Host::of(&[
        "/etc/java-17/jvm-amd64.cfg",
        "/etc/java-17/security/java.security",
        "/home/me/tool/settings",
        "/srv/file",
    ])
    .link(
        "/usr/lib/jvm/java/lib/jvm.cfg",
        "/etc/java-17/jvm-amd64.cfg",
    )
    .link("/usr/lib/jvm/java/conf/security", "/etc/java-17/security")
    .link("/usr/lib/tool", "/home/me/tool")
    .link("/usr/lib/file", "/srv/file");
    let first = host.advice("/usr/lib/jvm/java/lib/jvm.cfg", Read);
    assert_eq!(first, read("/etc/java-17"));
    let lookups = host.compare(&[
        ("/usr/lib/jvm/java/lib/jvm.cfg", Read),
        ("/usr/lib/jvm/java/conf/security/java.security", Read),
    ]);
    let lines: Vec<_> = lookups
        .iter()
        .map(|line| (&*line.path, line.paths))
        .collect();
    assert_eq!(lines, [("/etc/java-17", 2)]);
    // A home shows one file only, and so does a directory near the root.
    let only = |path| host.advice(path, Read);
    assert_eq!(
        only("/usr/lib/tool/settings"),
        read("/home/me/tool/settings")
    );
    assert_eq!(only("/usr/lib/file"), read("/srv/file"));
}

#[test]
fn what_is_shown_and_was_to_be_written_is_denied() {
    let host =
        Host::of(&["/usr/lib/x", "/opt/tool/bin/tool", "/srv/log/x"]).link("/lib", "usr/lib");
    assert_eq!(host.advice("/usr/lib/x", Write), write("/usr/lib/x"));
    assert_eq!(host.advice("/lib/x", Write), write("/lib/x"));
    assert_eq!(host.advice("/usr/lib/new", Write), write("/usr/lib"));
    assert_eq!(
        host.advice("/usr/no/new", Write),
        None,
        "no directory for it"
    );
    assert_eq!(
        host.advice("/usr/lib", Write),
        None,
        "a directory that is there"
    );
    assert_eq!(host.advice("/client/tool", Write), never(Reason::Own));
    assert_eq!(host.advice("/srv/log/x", Write), write("/srv/log/x"));
    assert_eq!(host.advice("/srv/log/new", Write), write("/srv/log"));
    assert_eq!(host.advice("/srv/no/new", Write), None);
}

#[test]
fn what_can_never_be_shown_is_said_so_and_why() {
    let host = Host::of(&[
        "/sys/kernel/x",
        "/run/x",
        "/proc/sys/x",
        "/etc/passwd",
        "/srv/a\nb",
    ])
    .link("/var/run", "/run")
    .link("/srv/status", "/sys/kernel/x")
    .and("/dev/kvm", HostObject::Closed)
    .and("/net", HostObject::Closed)
    .and("/srv/socket", HostObject::Closed);
    for path in [
        "/sys/kernel/x",
        "/run/x",
        "/var/run/x",
        "/srv/status",
        "/dev/kvm",
    ] {
        assert_eq!(host.advice(path, Read), never(Reason::System), "{path}");
    }
    assert_eq!(host.advice("/proc/sys/x", Write), never(Reason::System));
    assert_eq!(host.advice("/proc/self/comm", Write), never(Reason::System));
    assert_eq!(host.advice("/srv/socket", Read), never(Reason::Special));
    assert_eq!(host.advice("/net", List), never(Reason::Special));
    assert_eq!(host.advice("/net/elsewhere", Read), None, "never asked for");
    assert_eq!(host.advice("/etc/passwd", Write), never(Reason::Own));
    assert_eq!(host.advice("/srv/a\nb", Read), never(Reason::Unspelt));
}

#[test]
fn no_home_and_nothing_above_one_is_ever_proposed() {
    let host = Host::of(&["/root/x", "/home/other/x", "/data/home/user/x", "/etc/x"])
        .link("/srv/me", "/data/home/user");
    for path in [
        "/root",
        "/home/other",
        "/data/home/user",
        "/data/home",
        "/data",
        "/srv/me",
    ] {
        assert_eq!(host.advice(path, List), never(Reason::Broad), "{path}");
    }
    for directory in ["/root", "/home/other", "/data/home/user", "/etc"] {
        let file = format!("{directory}/x");
        assert_eq!(host.advice(&file, Read), read(&file));
        assert_eq!(
            host.advice(&format!("{directory}/new"), Write),
            never(Reason::Broad)
        );
    }
}

/// Returns `number` files below `directory`, and a lookup of each.
fn many(directory: &str, number: usize) -> Vec<String> {
    (0..number)
        .map(|one| format!("{directory}/{one}"))
        .collect()
}

fn weigh_all(paths: &[String]) -> Vec<(String, u64)> {
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let wanted: Vec<_> = paths.iter().map(|path| (*path, Read)).collect();
    let lookups = Host::of(&paths).compare(&wanted);
    lookups
        .into_iter()
        .map(|one| (one.path, one.paths))
        .collect()
}

#[test]
fn many_files_of_one_directory_become_one_line_and_few_do_not() {
    let lib = "/root/.pyenv/versions/3.11/lib";
    assert_eq!(weigh_all(&many(lib, 500)), [(lib.to_owned(), 500)]);
    assert_eq!(weigh_all(&many(lib, 4)), [(lib.to_owned(), 4)]);
    assert_eq!(weigh_all(&many(lib, 3)).len(), 3);
}

#[test]
fn many_directories_become_the_one_above_them() {
    let version = "/root/.pyenv/versions/3.11";
    let mut paths = Vec::new();
    for package in ["a", "b", "c"] {
        paths.extend(many(&format!("{version}/lib/{package}"), 10));
    }
    assert_eq!(weigh_all(&paths).len(), 3);
    paths.extend(many(&format!("{version}/bin"), 1));
    assert_eq!(weigh_all(&paths), [(version.to_owned(), 31)]);
}

#[test]
fn files_of_a_home_or_of_a_tree_near_the_root_stay_lines_of_their_own() {
    for directory in ["/root", "/home/other", "/data/home", "/etc", "/srv"] {
        assert_eq!(weigh_all(&many(directory, 9)).len(), 9, "{directory}");
    }
}

#[test]
fn a_directory_that_was_only_passed_is_shown_with_what_lies_below_it() {
    let host = Host::of(&["/root/app/lib/x", "/root/app/y"]);
    let paths = ["/root", "/root/app", "/root/app/lib", "/root/app/lib/x"];
    let passed = host.compare(&paths.map(|path| (path, Read)));
    assert_eq!(passed.len(), 1);
    assert_eq!(passed[0].advice, Advice::Read("/root/app/lib/x".into()));
    // A directory that was listed must be shown itself, which implies everything below it.
    let listed = host.compare(&[
        ("/root", Read),
        ("/root/app", List),
        ("/root/app/lib/x", Read),
        ("/root/app/lib/x", Execute),
    ]);
    let expected = Lookup {
        path: "/root/app".into(),
        paths: 2,
        kind: Execute,
        count: 3,
        at_us: 101,
        advice: Advice::Read("/root/app".into()),
    };
    assert_eq!(listed, [expected]);
}

#[test]
fn what_is_read_below_a_directory_to_be_written_is_counted_there() {
    let host = Host::of(&["/srv/cache/a", "/srv/cache/b"]);
    let lookups = host.compare(&[
        ("/srv/cache/a", Read),
        ("/srv/cache/b", Read),
        ("/srv/cache/new", Write),
        ("/srv/cache/new", Read),
    ]);
    let expected = Lookup {
        path: "/srv/cache".into(),
        paths: 3,
        kind: Write,
        count: 3,
        at_us: 100,
        advice: Advice::Write("/srv/cache".into()),
    };
    assert_eq!(lookups, [expected]);
}

#[test]
fn what_lies_in_the_callers_directory_is_missed_in_the_working_directory() {
    let mut host = Host::of(&[
        "/srv/work/script",
        "/srv/work/src/x",
        "/root/script",
        "/tmp/x/script",
    ]);
    let work = |name: &str| format!("/home/work/{name}");
    let absent = never(Reason::Absent);
    assert_eq!(host.advice(&work("script"), Read), absent);
    host.directory = Some("/srv/work".into());
    assert_eq!(host.advice(&work("script"), Read), read("/srv/work"));
    assert_eq!(host.advice(&work("src/x"), Execute), read("/srv/work"));
    assert_eq!(host.advice(&work(""), List), read("/srv/work"));
    // In turn: a lookup that every shell makes, a missing path, the program's own file, and a path elsewhere.
    assert_eq!(host.advice(&work(""), Read), None);
    assert_eq!(host.advice(&work("other"), Read), absent);
    assert_eq!(host.advice(&work("script"), Write), None);
    assert_eq!(host.advice("/tmp/script", Read), None);
    let script = work("script");
    assert_eq!(host.compare(&[(&script, Write), (&script, Read)]), []);
    host.directory = Some("/tmp/x".into());
    assert_eq!(host.advice(&script, Read), read("/tmp/x"));
    // A home is never shown.
    host.directory = Some("/root".into());
    assert_eq!(host.advice(&script, Read), absent);
}

#[test]
fn options_come_first_and_the_credential_is_in_no_path() {
    let secret = "/srv/runner-key-0123456789abcdef";
    let host = Host::of(&[secret, "/sys/x"]);
    let lookups = host.compare(&[("/sys/x", Read), (secret, Read)]);
    assert_eq!(lookups[1].advice, Advice::Never(Reason::System));
    assert!(!format!("{lookups:?}").contains("0123456789abcdef"));
}

#[test]
fn a_name_of_the_home_that_was_never_there_is_told_and_what_was_made_is_not() {
    let host = Host::of(&["/usr/x"]);
    let absent = never(Reason::Absent);
    assert_eq!(host.advice("/home/sandbox/.aws/credentials", Read), absent);
    assert_eq!(host.advice("/home/sandbox/made/other", List), absent);
    for path in ["", "/made", "/made/file", "/gone"] {
        assert_eq!(host.advice(&format!("/home/sandbox{path}"), Read), None);
    }
    assert_eq!(host.advice("/home/sandbox/.netrc", Write), None);
    let many: Vec<String> = (0..9).map(|n| format!("/home/sandbox/.rc{n}")).collect();
    assert_eq!(weigh_all(&many).len(), 9, "no name takes another's place");
}

#[test]
fn what_lies_below_a_path_is_found_whatever_stands_beside_it() {
    let names = ["a-b", "a", "a/x", "a.c", "b/y/z", "ab", "c"];
    let paths = names.map(str::to_owned);
    let present = PresentPaths::new(&paths);
    for path in ["a", "a/x", "a-b", "b", "b/y", "b/y/z", "c", "ab"] {
        assert!(present.has(Path::new(path)), "{path}");
    }
    for path in ["a/y", "a-", "b/x", "b/y/z/0", "d", "0", "a/x/y"] {
        assert!(!present.has(Path::new(path)), "{path}");
        let slow = names.iter().any(|one| Path::new(one).starts_with(path));
        assert!(!slow, "{path}");
    }
}

#[test]
fn what_was_not_weighed_in_time_is_counted() {
    let host = Host::of(&["/srv/data/x", "/srv/data/y"]);
    let wanted = [
        ("/srv/data/x", Read),
        ("/srv/data/x", Read),
        ("/srv/data/y", Read),
    ];
    assert_eq!(host.compare(&wanted).len(), 2);
    let comparison = host.compare_until(&wanted, Instant::now());
    assert_eq!((comparison.lookups, comparison.uncompared), (Vec::new(), 3));
}
