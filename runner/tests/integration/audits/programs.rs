//! Common programs, as a distribution packages them: the report lists exactly the attempts of each.

use super::{Audit, Audited, open_directory};
use crate::needs_program;

/// Runs the check as root, if the tests run as root, and as an ordinary user.
fn as_both(audit: impl Fn() -> Audit, check: impl Fn(&Audited)) {
    check(&audit().run());
    check(&audit().as_ordinary_user().run());
}

#[test]
fn curl_asks_for_the_name_and_is_told_that_there_is_none() {
    needs_program!("/usr/bin/curl");
    let audit = || Audit::of(["/usr/bin/curl", "-sS", "https://api.example.com/v1"]);
    as_both(audit, |audited| {
        audited.assert_code(6);
        assert_eq!(audited.names(), ["api.example.com"]);
        assert_eq!(audited.attempts(), [""; 0]);
        assert!(audited.stderr.contains("AUDITED, 1 finding: 1 name\n"));
    });
}

#[test]
fn curl_is_refused_at_once_where_it_knows_the_address() {
    needs_program!("/usr/bin/curl");
    let audit = || Audit::of(["/usr/bin/curl", "-sS", "http://192.0.2.7:8080/"]);
    as_both(audit, |audited| {
        audited.assert_code(7);
        assert_eq!(audited.attempts(), ["192.0.2.7:8080 ENETUNREACH"]);
    });
}

#[test]
fn curl_reaches_the_stub() {
    needs_program!("/usr/bin/curl");
    let audit = || {
        Audit::of([
            "/usr/bin/curl",
            "-sS",
            "-o",
            "/dev/null",
            "-w",
            "%{http_code}",
            "-I",
            "{base_url}/",
        ])
    };
    as_both(audit, |audited| {
        audited.assert_printed(0, "200");
        assert_eq!(audited.requests(), ["HEAD /"]);
        assert_eq!(audited.report["findings"]["count"], 0);
    });
}

#[test]
fn git_asks_for_the_host_and_leaves_nothing() {
    needs_program!("/usr/bin/git");
    let audit = || Audit::of(["/usr/bin/git", "clone", "https://git.example.com/x/y"]);
    as_both(audit, |audited| {
        audited.assert_code(128);
        assert_eq!(audited.names(), ["git.example.com"]);
        assert_eq!(
            audited.report["evidence"]["files"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|file| file["transient"] == false)
                .count(),
            0
        );
        let processes = audited.report["evidence"]["processes"].as_array().unwrap();
        let started = |name: &str| {
            processes
                .iter()
                .any(|one| one["program"].as_str().unwrap().ends_with(name))
        };
        assert!(
            started("git-remote-https") || started("git"),
            "{processes:?}"
        );
    });
}

#[test]
fn git_works_on_a_directory_that_it_is_shown() {
    needs_program!("/usr/bin/git");
    let directory = open_directory("/var/tmp");
    let path = directory.path().to_str().unwrap();
    let line = format!(
        "git init -q {path}/r && cd {path}/r && echo x > f && git add f && git -c user.name=n -c user.email=e commit -qm m && git log --format=%s"
    );
    let audited = Audit::shell(&line).option(format!("--write={path}")).run();
    audited.assert_printed(0, "m\n");
    assert_eq!(audited.report["findings"]["count"], 0, "{}", audited.stderr);
}

#[test]
fn node_asks_for_the_name() {
    needs_program!("/usr/bin/node");
    let script = "fetch('https://node.example.com').catch(error => console.log(error.cause.code))";
    let audit = || Audit::of(["/usr/bin/node", "-e", script]);
    as_both(audit, |audited| {
        audited.assert_printed(0, "ENOTFOUND\n");
        assert_eq!(audited.names(), ["node.example.com"]);
    });
}

#[test]
fn npm_says_its_version_and_asks_nobody() {
    needs_program!("/usr/bin/npm");
    as_both(
        || Audit::of(["/usr/bin/npm", "--version"]),
        |audited| {
            audited.assert_code(0);
            assert!(
                audited
                    .stdout
                    .trim_end()
                    .split('.')
                    .all(|part| part.parse::<u32>().is_ok())
            );
            assert_eq!((audited.names().len(), audited.attempts().len()), (0, 0));
        },
    );
}

#[test]
fn npm_asks_for_its_registry() {
    needs_program!("/usr/bin/npm");
    let audit = || Audit::of(["/usr/bin/npm", "view", "left-pad", "--fetch-retries=0"]);
    as_both(audit, |audited| {
        audited.assert_code(1);
        assert_eq!(audited.names(), ["registry.npmjs.org"]);
    });
}

#[test]
fn python_reaches_the_stub_and_nobody_else() {
    needs_program!("/usr/bin/python3");
    let script = "import sys, urllib.request as u\nprint(u.urlopen(u.Request(sys.argv[1], method='HEAD')).status)\ntry: u.urlopen('http://192.0.2.9/')\nexcept OSError as e: print(e.reason.errno)";
    let audit = || Audit::of(["/usr/bin/python3", "-c", script, "{base_url}/"]);
    as_both(audit, |audited| {
        audited.assert_printed(0, &format!("200\n{}\n", libc::ENETUNREACH));
        assert_eq!(audited.requests(), ["HEAD /"]);
        assert_eq!(audited.attempts(), ["192.0.2.9:80 ENETUNREACH"]);
    });
}

#[test]
fn bash_opens_no_connection_by_its_own_devices() {
    needs_program!("/bin/bash");
    let audit = || Audit::of(["/bin/bash", "-c", "exec 3<>/dev/tcp/192.0.2.5/25"]);
    as_both(audit, |audited| {
        audited.assert_code(1);
        assert_eq!(audited.attempts(), ["192.0.2.5:25 ENETUNREACH"]);
    });
}

/// glibc asks the resolver for the IPv6 address, which /etc/hosts does not have.
#[test]
fn localhost_is_no_name_asked_for() {
    needs_program!("/usr/bin/python3");
    let script = "import socket\n\
                  print({found[4][0] for found in socket.getaddrinfo('localhost', 80)})\n\
                  try: socket.getaddrinfo('localhost', 80, socket.AF_INET6)\n\
                  except socket.gaierror: print('none')\n\
                  try: socket.getaddrinfo('localhost.example', 80)\n\
                  except socket.gaierror: print('none')";
    let audit = || Audit::of(["/usr/bin/python3", "-c", script]);
    as_both(audit, |audited| {
        audited.assert_printed(0, "{'127.0.0.1'}\nnone\nnone\n");
        assert_eq!(audited.names(), ["localhost.example"]);
    });
}
