//! Attempts, names, programs and the end of the run.

use super::*;

#[test]
fn an_attempt_counts_by_program_call_destination_and_outcome_and_not_by_number() {
    let with = |attempts: Vec<Attempt>| move |run: &mut Run| run.evidence.attempts.extend(attempts);
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
fn only_ports_of_loopback_that_the_kernel_gives_are_alike() {
    let at = |address: &'static str, port: u16| {
        move |run: &mut Run| {
            let call = connect("inet", address, Some(port));
            run.evidence.attempts.push(call);
        }
    };
    let found = between(at("127.0.0.1", 40_001), at("127.0.0.1", 50_002));
    assert_eq!(found, Vec::<String>::new());
    let low = between(at("127.0.0.1", 5432), at("127.0.0.1", 6379));
    assert_eq!(low.len(), 2);
    let away = between(at("192.0.2.1", 40_001), at("192.0.2.1", 50_002));
    assert_eq!(away.len(), 2);
}

#[test]
fn a_name_is_compared_with_its_type_and_not_its_count() {
    let with = |kind: &'static str, count| {
        move |run: &mut Run| {
            let mut asked = question("example.com");
            (asked.kind, asked.count) = (kind.to_owned(), count);
            run.evidence.names.push(asked);
        }
    };
    assert_eq!(between(with("A", 1), with("A", 4)), Vec::<String>::new());
    assert_eq!(between(with("A", 1), with("AAAA", 1)).len(), 2);
}

#[test]
fn a_program_is_compared_with_its_arguments_and_who_started_it() {
    let git = |pid, ppid, args: &[&str]| Process {
        pid,
        ppid,
        program: "/usr/bin/git".to_owned(),
        args: args.iter().map(|word| (*word).to_owned()).collect(),
    };
    let one = || git(5, 2, &["git", "log", "a b", "Say something."]);
    assert_eq!(
        changed(|run| run.evidence.processes.push(one())),
        ["processes /usr/bin/git: git log \"a b\" (prompt of 14 bytes): - => started by {client}"]
    );
    let found = between(
        |run| run.evidence.processes.push(one()),
        |run| {
            run.evidence
                .processes
                .extend([one(), git(9, 2, &["git", "log", "a b", "Say something."])])
        },
    );
    assert_eq!(found, Vec::<String>::new());
    let replaced = changed(|run| run.evidence.processes.push(git(2, 1, &["git"])));
    assert!(
        replaced[0].ends_with("=> in place of {client}"),
        "{replaced:?}"
    );
    let words = between(
        |run| run.evidence.processes.push(git(5, 2, &["git", "a", "b"])),
        |run| run.evidence.processes.push(git(5, 2, &["git", "a b"])),
    );
    assert_eq!(words.len(), 2, "{words:?}");
    let named = |program: &'static str, args: &'static [&'static str]| {
        move |run: &mut Run| {
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
        move |run: &mut Run| {
            let own = &mut run.evidence.processes[0];
            own.program = path.to_owned();
            let mut again = own.clone();
            (again.pid, again.ppid, again.args) = (7, own.pid, vec![path.to_owned()]);
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
    assert!(literally[0].starts_with("processes \"{the text client}\": "));
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
        move |run: &mut Run| {
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

/// A report that somebody wrote may have as many as there is room for.
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
    assert_eq!(found.len(), 1);
    assert!(found[0].ends_with("its parent has ended and started by the runner"));
}

#[test]
fn where_a_link_leads_counts() {
    let link = |target: &'static str| {
        move |run: &mut Run| {
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
    let lines = run.evidence.records.len() + 1;
    let connections = run.evidence.connections.len();
    let applied = behaviour(run).applied();
    assert_eq!(applied.of(Rule::Output), lines as u64);
    assert_eq!(applied.of(Rule::Connections), connections as u64);
    assert!(connections > 0);
}
