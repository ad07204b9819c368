//! Attempts, names, programs and the end of the run.

use super::*;

#[test]
fn an_attempt_counts_by_program_call_destination_and_outcome_and_not_by_number() {
    let with =
        |attempts: Vec<Attempt>| move |run: &mut Fixture| run.evidence.attempts.extend(attempts);
    let out = || connect("inet", "192.0.2.1", Some(443));
    assert_eq!(
        changed(with(vec![out()])),
        ["attempts {client} connect inet 192.0.2.1 port 443: - => denied ENETUNREACH"]
    );
    let many = Attempt { count: 9, ..out() };
    let found = between(with(vec![out()]), with(vec![many, out()]));
    assert_eq!(found, Vec::<String>::new());
    let allowed = Attempt {
        outcome: Outcome::Allowed,
        ..out()
    };
    assert_eq!(
        between(with(vec![out()]), with(vec![allowed.clone()])).len(),
        1
    );
    let both = between(with(vec![out()]), with(vec![out(), allowed]));
    assert!(
        both[0].ends_with("allowed and denied ENETUNREACH"),
        "{both:?}"
    );
    let setup = Attempt {
        kind: AttemptKind::Setup,
        ..attempt("listen")
    };
    assert_unchanged(with(vec![setup]));
    assert_eq!(changed(with(vec![attempt("listen")])).len(), 1);
}

#[test]
fn sensitive_path_counts_by_use_and_not_by_number() {
    let with = |path: &'static str, kind, count| {
        move |run: &mut Fixture| {
            run.evidence.sensitive.push(SensitivePath {
                what: Sensitive::Aws,
                path: path.to_owned(),
                kind,
                count,
                at_us: count,
            });
        }
    };
    let read = with("/root/.aws/config", LookupKind::Read, 1);
    assert_eq!(
        changed(read),
        ["outcome looked for /root/.aws/config: - => read aws"]
    );
    let often = with("/root/.aws/config", LookupKind::Read, 9);
    assert_eq!(between(read, often), Vec::<String>::new());
    let written = with("/root/.aws/config", LookupKind::Write, 1);
    assert_eq!(between(read, written).len(), 1);
}

#[test]
fn call_to_the_resolver_is_the_name_and_no_attempt() {
    assert_unchanged(|run: &mut Fixture| {
        run.evidence.attempts.push(Attempt {
            kind: AttemptKind::Question,
            outcome: Outcome::Allowed,
            ..connect("inet", "127.0.0.1", Some(53))
        });
    });
}

#[test]
fn only_ports_of_loopback_that_the_kernel_gives_are_alike() {
    let at = |address: &'static str, port: u16| {
        move |run: &mut Fixture| {
            let call = connect("inet", address, Some(port));
            run.evidence.attempts.push(call);
        }
    };
    for host in [
        "127.0.0.1",
        "127.8.9.1",
        "::1",
        "::ffff:127.0.0.2",
        "0.0.0.0",
        "::",
    ] {
        let found = between(at(host, 40_001), at(host, 50_002));
        assert_eq!(found, Vec::<String>::new(), "{host}");
    }
    let low = between(at("127.0.0.1", 5432), at("127.0.0.1", 6379));
    assert_eq!(low.len(), 2);
    let away = between(at("192.0.2.1", 40_001), at("192.0.2.1", 50_002));
    assert_eq!(away.len(), 2);
}

#[test]
fn a_name_is_compared_with_its_type_and_not_its_count() {
    let with = |kind: &'static str, count| {
        move |run: &mut Fixture| {
            let mut asked = question("example.com");
            (asked.kind, asked.count) = (kind.to_owned(), count);
            run.evidence.names.push(asked);
        }
    };
    assert_eq!(between(with("A", 1), with("A", 4)), Vec::<String>::new());
    assert_eq!(between(with("A", 1), with("AAAA", 1)).len(), 2);
}

#[test]
fn the_way_to_the_stub_tells_its_port_and_no_other_low_one_is_replaced() {
    let at = |stub: u16, other: u16| {
        move |run: &mut Fixture| {
            let evidence = &mut run.evidence;
            evidence.attempts[1].port = Some(stub);
            let post = &mut evidence.requests[0];
            set_header(post, "host", &format!("127.0.0.1:{stub}"));
            add_header(post, "x-other", &format!("127.0.0.1:{other}"));
            let mapped = connect("inet6", "::ffff:127.0.0.1", Some(stub));
            evidence.attempts.push(mapped);
            let base_url = format!("http://localhost:{stub}/v1");
            evidence.processes[0].args.push(Arg::Word(base_url));
        }
    };
    let found = between(at(20_001, 5432), at(20_002, 5432));
    assert_eq!(found, Vec::<String>::new());
    let found = between(at(20_001, 5432), at(20_002, 6379));
    assert_eq!(
        found,
        ["headers POST /v1/messages x-other: 127.0.0.1:5432 => 127.0.0.1:6379"]
    );
    // An attempt to bind or connect to a port does not make the port the stub's.
    let bound = |port: u16| {
        move |run: &mut Fixture| {
            let bind = Attempt {
                kind: AttemptKind::Attempt,
                outcome: Outcome::Allowed,
                syscall: "bind".into(),
                ..connect("inet", "127.0.0.1", Some(port))
            };
            run.evidence.attempts.push(bind);
        }
    };
    assert_eq!(between(bound(20_001), bound(20_002)).len(), 2);
}

/// Pairs that would be equal if only blanks separated the words.
#[test]
fn no_two_attempts_have_one_key() {
    let unix = |address: &str| connect("unix", address, None);
    let of = |program: &str, call: Attempt| Attempt {
        program: program.to_owned(),
        ..call
    };
    let asked = |names: &[&str]| Attempt {
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        ..connect("inet", "192.0.2.1", Some(53))
    };
    let typed = Attempt {
        socket_type: Some("dgram".to_owned()),
        address: None,
        ..unix("")
    };
    let pairs = [
        (
            of("/a connect", attempt("b")),
            of("/a", attempt("connect b")),
        ),
        (unix("/a port 5"), connect("unix", "/a", Some(5))),
        (unix("dgram"), typed),
        (asked(&["a, b"]), asked(&["a", "b"])),
        (unix("\"/a\""), unix("/a")),
        (unix("\"/a b\""), unix("/a b")),
    ];
    for (one, other) in pairs {
        let both = changed(|run| {
            let outcome = Outcome::Allowed;
            let one = Attempt { outcome, ..one };
            run.evidence.attempts.extend([one, other]);
        });
        assert_eq!(both.len(), 2, "{both:?}");
    }
    let ordinary = changed(|run| {
        let call = of("/usr/bin/a-b.c", unix("@/tmp/.X11-unix/X0"));
        run.evidence.attempts.push(call);
    });
    assert!(ordinary[0].starts_with("attempts /usr/bin/a-b.c connect unix @/tmp/.X11-unix/X0: "));
}

#[test]
fn what_outlives_the_client_is_no_program_that_was_started() {
    let found = changed(|run| {
        let mut started = run.evidence.processes[0].clone();
        (started.program, started.args) = ("a".to_owned(), vec![Arg::Word("b".to_owned())]);
        run.evidence.processes.push(started);
        run.evidence.survivors.push(model::evidence::Survivor {
            pid: 7,
            program: "a: b".to_owned(),
        });
    });
    assert_eq!(
        found,
        [
            "processes \"a: b\": - => outlives the client",
            "processes a b: - => started",
        ]
    );
}

/// A parent may have ended before the supervisor reads it, and so may the parent's parent.
#[test]
fn a_program_is_compared_with_its_arguments_and_not_with_who_started_it() {
    let git = |pid, ppid, args: &[&str]| Process {
        pid,
        ppid,
        program: "/usr/bin/git".to_owned(),
        further_args: 0,
        refused: None,
        args: args
            .iter()
            .map(|word| match *word {
                "Say something." => Arg::Prompt {
                    bytes: 14,
                    sha256: digest(14),
                },
                word => Arg::Word(word.to_owned()),
            })
            .collect(),
    };
    let one = |pid, ppid| git(pid, ppid, &["git", "log", "a b", "Say something."]);
    assert_eq!(
        changed(|run| run.evidence.processes.push(one(5, 2))),
        ["processes /usr/bin/git git log \"a b\" (prompt of 14 bytes): - => started"]
    );
    for (pid, ppid) in [(5, 1), (9, 4), (9, 0), (2, 1)] {
        let found = between(
            |run| run.evidence.processes.push(one(5, 2)),
            |run| run.evidence.processes.extend([one(pid, ppid), one(5, 2)]),
        );
        assert_eq!(found, Vec::<String>::new());
    }
    let mut run = case_b();
    run.evidence.processes.push(one(5, 2));
    assert_eq!(behaviour(run).applied().of("origins"), 4);
    let words = between(
        |run| run.evidence.processes.push(git(5, 2, &["git", "a", "b"])),
        |run| run.evidence.processes.push(git(5, 2, &["git", "a b"])),
    );
    assert_eq!(words.len(), 2, "{words:?}");
    let named = |program: &'static str, args: &'static [&'static str]| {
        move |run: &mut Fixture| {
            let program = program.to_owned();
            let one = git(5, 2, args);
            run.evidence.processes.push(Process { program, ..one });
        }
    };
    let names = between(named("/a: b", &["c"]), named("/a", &["b", "c"]));
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn where_the_clients_own_program_lies_is_no_difference() {
    let at = |path: &'static str| {
        move |run: &mut Fixture| {
            let own = &mut run.evidence.processes[0];
            own.program = path.to_owned();
            let mut again = own.clone();
            (again.pid, again.ppid, again.args) = (7, own.pid, vec![Arg::Word(path.to_owned())]);
            run.evidence.processes.push(again);
            let mut out = connect("inet", "192.0.2.1", Some(443));
            out.program = path.to_owned();
            run.evidence.attempts.push(out);
        }
    };
    let found = between(at("/a/target/debug/runner"), at("/b/runner"));
    assert_eq!(found, Vec::<String>::new());
    let literally = changed(|run| {
        let mut own = run.evidence.processes[0].clone();
        (own.pid, own.program) = (7, "{client}".to_owned());
        run.evidence.processes.push(own);
    });
    assert!(literally[0].starts_with("processes {{client} "));
}

#[test]
fn the_end_of_a_run_counts() {
    assert_eq!(
        changed(|run| run.evidence.exit = Exit::Signal(9)),
        ["outcome exit: code 0 => signal 9"]
    );
    assert_eq!(
        changed(|run| run.evidence.stderr.bytes = 7),
        ["outcome standard error: nothing => something"]
    );
    let seen = |place: &'static str| {
        move |run: &mut Fixture| {
            run.evidence.sightings.push(Sighting {
                place: place.to_owned(),
                form: "base64".to_owned(),
            });
        }
    };
    assert_eq!(
        changed(seen("request 2 header cookie")),
        ["outcome credential in request header cookie: - => base64"]
    );
    assert_eq!(
        between(seen("stdout line 3"), seen("stdout line 4")),
        Vec::<String>::new()
    );
    assert_eq!(between(seen("file a 3"), seen("file a 4")).len(), 2);
}

/// A hand-written report may have any number of entries.
#[test]
fn very_many_programs_are_read_without_ado() {
    let found = changed(|run| {
        let first = run.evidence.processes[0].clone();
        let orphan = |pid| Process {
            pid,
            ppid: -1,
            ..first.clone()
        };
        run.evidence.processes.extend((10..60_000).map(orphan));
    });
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn where_a_link_leads_counts() {
    let link = |target: &'static str| {
        move |run: &mut Fixture| {
            let mut link = file(Root::Home, "link");
            (link.kind, link.mode, link.sha256) = (FileKind::Symlink, 0o777, None);
            link.target = Some(target.to_owned());
            run.evidence.files.push(link);
        }
    };
    assert_eq!(
        between(link("/etc/passwd"), link("/etc/shadow")),
        ["files home link: symlink 0777 to /etc/passwd => symlink 0777 to /etc/shadow"]
    );
    let found = between(link("/tmp/tmp.abcdefghij/x"), link("/tmp/tmp.0123456789/x"));
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn what_no_report_has_is_counted_as_not_compared() {
    let mut run = case_b();
    run.evidence.stderr.bytes = 7;
    let lines = run.evidence.records.len() + 2;
    let found = behaviour(run);
    let applied = found.applied();
    assert_eq!(applied.of("output"), lines as u64);
    assert_eq!(applied.of("connections"), 2);
}
