//! A client that tries, asks, starts and looks for everything, with hostile text where there may be any.

use nix::errno::Errno;

use super::*;

/// Attempts, names, programs and files that were there for a time.
pub(super) fn tries_everything(evidence: &mut Evidence) {
    let numbered = |seq, attempt| Attempt { seq, ..attempt };
    let mut query = connect("inet", "192.0.2.53", Some(53));
    (query.syscall, query.names) = ("sendto", vec![HOSTILE.to_owned()]);
    let mut listen = attempt("listen");
    listen.outcome = Outcome::Allowed;
    evidence.attempts.extend([
        numbered(3, connect("inet", "192.0.2.1", Some(443))),
        numbered(4, query),
        numbered(5, connect("unix", "/run/helper", None)),
        numbered(6, connect("unix", HOSTILE, None)),
        numbered(7, listen),
        Attempt {
            seq: 8,
            count: 4,
            program: HOSTILE.to_owned(),
            ..connect("inet6", "2001:db8::1", Some(443))
        },
        Attempt {
            seq: 9,
            program: HOSTILE.to_owned(),
            ..over_limit("pipe2", Errno::ENFILE, "limit of 100000 pipes")
        },
        Attempt {
            seq: 10,
            ..over_limit(
                "memfd_create",
                Errno::ENOMEM,
                "limit of 1024 MiB of shared memory, files by file_size",
            )
        },
    ]);
    evidence.names.push(question(HOSTILE));
    evidence.lookups = missed();
    evidence.processes.push(started(&[
        "::error::sh",
        "-c",
        HOSTILE,
        "agent-cli 'Say something.'",
        &"x".repeat(200),
    ]));
    let mut gone = file(Root::Home, "::error::state.tmp");
    (gone.transient, gone.sha256) = (true, None);
    evidence.files.push(gone);
}

/// A call that the supervisor refused at this limit.
fn over_limit(call: &'static str, errno: Errno, limit: &str) -> Attempt {
    Attempt {
        kind: AttemptKind::Setup,
        address: Some(limit.to_owned()),
        outcome: Outcome::Denied(errno),
        ..attempt(call)
    }
}

/// Paths of every kind, with every kind of advice.
pub(super) fn missed() -> Vec<Lookup> {
    let lookup = |path: &str, kind, advice| Lookup {
        path: path.to_owned(),
        paths: 1,
        kind,
        count: 1,
        at_us: 230_000,
        advice,
    };
    let python = "/root/.pyenv/versions/3.11";
    let several = Lookup {
        paths: 34,
        count: 12_345,
        ..lookup(python, LookupKind::Execute, Advice::Read(python.to_owned()))
    };
    let kernel = Advice::Never(Reason::System);
    vec![
        several,
        lookup(
            &format!("/srv/{HOSTILE}   --read /root"),
            LookupKind::Write,
            Advice::Write("/srv".to_owned()),
        ),
        lookup(
            "/srv/it's",
            LookupKind::List,
            Advice::Read("/srv/it's".to_owned()),
        ),
        lookup("/sys/x", LookupKind::Read, kernel),
        lookup("/srv/s", LookupKind::Read, Advice::Never(Reason::Special)),
        lookup("/root", LookupKind::List, Advice::Never(Reason::Broad)),
        lookup("/etc/hosts", LookupKind::Write, Advice::Never(Reason::Own)),
        lookup(HOSTILE, LookupKind::Read, Advice::Never(Reason::Unspelt)),
    ]
}

/// A program that the client started.
pub(super) fn started(args: &[&str]) -> model::evidence::Process {
    model::evidence::Process {
        pid: 7,
        ppid: 2,
        program: "/bin/sh".to_owned(),
        args: args.iter().map(|argument| (*argument).to_owned()).collect(),
    }
}
