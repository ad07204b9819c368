//! The library on its own: programs sealed by an executable that is not `runner`.
//!
//! Without the standard harness, since the sandbox starts this executable again for its own processes.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "all of this is test code"
)]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use model::evidence::{CanaryStatus, LayerNeed, LayerStatus, Outcome};
use nix::errno::Errno;
use sandbox::message::ExitStatus;
use sandbox::{Ran, Sandbox, SealError, no_server, reenter};

const TESTS: &[(&str, fn())] = &[
    (
        "outputs_and_code_are_returned",
        outputs_and_code_are_returned,
    ),
    (
        "host_file_is_absent_unless_shown",
        host_file_is_absent_unless_shown,
    ),
    (
        "connect_is_refused_and_listed",
        connect_is_refused_and_listed,
    ),
    ("layers_and_canaries_hold", layers_and_canaries_hold),
    (
        "program_at_its_time_limit_is_ended",
        program_at_its_time_limit_is_ended,
    ),
    (
        "program_without_its_loader_is_an_error",
        program_without_its_loader_is_an_error,
    ),
    ("missing_program_is_an_error", missing_program_is_an_error),
    (
        "path_of_the_sandbox_itself_cannot_be_shown",
        path_of_the_sandbox_itself_cannot_be_shown,
    ),
    (
        "runs_of_two_threads_do_not_meet",
        runs_of_two_threads_do_not_meet,
    ),
];

fn main() -> ExitCode {
    if let Some(code) = reenter(no_server) {
        return code;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_asked = |option: &str| arguments.iter().any(|argument| argument == option);
    if is_asked("--list") {
        let shown = TESTS.iter().filter(|_| !is_asked("--ignored"));
        shown.for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let words: Vec<&String> = arguments
        .iter()
        .filter(|word| !word.starts_with('-'))
        .collect();
    let is_chosen = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(*word));
    let chosen: Vec<_> = TESTS.iter().filter(|(name, _)| is_chosen(name)).collect();
    println!("\nrunning {} tests", chosen.len());
    if !is_possible() {
        println!("skipped: this host has no namespaces for a sandbox\n");
        return ExitCode::SUCCESS;
    }
    for (name, test) in &chosen {
        test();
        println!("test {name} ... ok");
    }
    let hidden = TESTS.len() - chosen.len();
    println!(
        "\ntest result: ok. {} passed; 0 failed; 0 ignored; 0 measured; {hidden} filtered out\n",
        chosen.len()
    );
    ExitCode::SUCCESS
}

/// True if this host can make a sandbox, or must.
fn is_possible() -> bool {
    match shell("true").run() {
        Err(SealError::SetUp(error)) if error.rules_out_namespaces() => {
            assert!(std::env::var_os("SANDBOX_MUST_WORK").is_none(), "{error}");
            false
        }
        _ => true,
    }
}

/// A shell with the programs of the host.
fn shell(script: &str) -> Sandbox {
    let sandbox = Sandbox::new("/bin/sh")
        .arguments(["-c", script])
        .variable("PATH", "/usr/bin:/bin");
    let system = ["/usr", "/bin", "/lib", "/lib64"];
    let present = system
        .into_iter()
        .filter(|path| std::fs::exists(path).unwrap());
    present.fold(sandbox, Sandbox::show)
}

#[track_caller]
fn run(script: &str) -> Ran {
    shell(script)
        .run()
        .unwrap_or_else(|error| panic!("{error}: {error:?}"))
}

fn outputs_and_code_are_returned() {
    let ran = run("echo out; echo err >&2; exit 7");
    assert_eq!(ran.status, Some(ExitStatus::Code(7)));
    assert_eq!(
        (&ran.stdout[..], &ran.stderr[..]),
        (&b"out\n"[..], &b"err\n"[..])
    );
}

fn host_file_is_absent_unless_shown() {
    const FILE: &str = "/etc/os-release";
    let script = format!("cat {FILE}");
    let ran = run(&script);
    let stderr = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(stderr.ends_with("No such file or directory\n"), "{stderr}");
    let ran = shell(&script).show(FILE).run().unwrap();
    assert_eq!(ran.stdout, std::fs::read(FILE).unwrap());
}

fn connect_is_refused_and_listed() {
    let ran = run("getent ahosts 192.0.2.1 >/dev/null; echo | getent hosts example.org");
    let asked = |(question, _): &(sandbox::dns::Asked, u64)| question.name == "example.org";
    assert!(ran.questions.iter().any(asked), "{:?}", ran.questions);
    let mut attempts = ran.ledger.attempts.iter();
    let unix = attempts.find(|attempt| attempt.family.as_deref() == Some("unix"));
    assert_eq!(unix.unwrap().outcome, Outcome::Denied(Errno::EACCES));
}

fn layers_and_canaries_hold() {
    let isolation = run("true").isolation;
    assert!(isolation.layers.len() > 10);
    for layer in &isolation.layers {
        let holds = layer.status == LayerStatus::Enforced || layer.need != LayerNeed::Required;
        assert!(holds, "{layer:?}");
    }
    let held = isolation.canaries.iter();
    let held = held
        .filter(|canary| canary.status == CanaryStatus::Held)
        .count();
    assert!(held > 20, "{:?}", isolation.canaries);
}

fn program_at_its_time_limit_is_ended() {
    let start = Instant::now();
    let ran = shell("echo begun; sleep 600")
        .timeout(Duration::from_millis(300))
        .run();
    let ran = ran.unwrap();
    assert_eq!((ran.status, &ran.stdout[..]), (None, &b"begun\n"[..]));
    assert!(start.elapsed() < Duration::from_secs(30));
}

fn program_without_its_loader_is_an_error() {
    let error = Sandbox::new("/bin/sh").run().unwrap_err();
    assert!(
        matches!(error, SealError::NotExecuted(Errno::ENOENT)),
        "{error:?}"
    );
}

fn path_of_the_sandbox_itself_cannot_be_shown() {
    for path in ["/tmp/x", "/proc", "/home/me", "relative", "/"] {
        let error = Sandbox::new("/bin/sh").show(path).run().unwrap_err();
        assert!(matches!(error, SealError::Path { .. }), "{path}: {error:?}");
    }
}

fn runs_of_two_threads_do_not_meet() {
    let run = |word: &'static str| move || run(&format!("echo {word}")).stdout;
    let other = std::thread::spawn(run("one"));
    assert_eq!(run("two")(), b"two\n");
    assert_eq!(other.join().unwrap(), b"one\n");
}

fn missing_program_is_an_error() {
    let error = Sandbox::new("/no/such/program").run().unwrap_err();
    assert_eq!(error.to_string(), "cannot open /no/such/program");
}
