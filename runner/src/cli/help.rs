//! The texts of the help that are longer than a line.

pub(super) const CLIENT: &str = "Client";
pub(super) const PROGRAM: &str = "Program";
pub(super) const SANDBOX: &str = "Sandbox";
pub(super) const OUTPUT: &str = "Output";

pub(super) const ABOUT: &str =
    "Runs an agent client in a sealed sandbox and proves what it sends, writes and tries";

pub(super) const LONG_ABOUT: &str = "\
Runs an agent client in a sealed sandbox and proves what it sends, writes and tries.

The client gets a temporary home, a network that has loopback only, and a provider stub that answers \
it. What it sends, prints, writes and tries is collected outside of it and compared with what the case \
expects. The verdict says what was proved, what was seen, and what was not proved.";

macro_rules! run_exit_codes {
    () => {
        "\
Exit codes:
  0  passed: every check of the case passed
  1  failed: a check failed, a client time-out included
  2  usage or policy error, or an output that cannot be opened; nothing was run
  3  errored: the sandbox could not be had, or evidence was lost, or the run was interrupted"
    };
}

pub(super) const AUDIT_EXIT_CODES: &str = "\
The program sees the system's directories read-only, its own, an empty home, and a network that has loopback \
only. Its output is passed on; what it tried is told on standard error.

Exit codes:
  the program's own, and 128 + N where signal N ended it
  124  it ran longer than --timeout
  125  the audit itself failed: wrong use, no sandbox, or evidence lost
  126  the program cannot be executed
  127  the program, or the loader or interpreter that it names, is not there

Examples:
  runner audit -- curl -s https://example.com
  runner audit --read . -- python3 build.py
  runner audit --env ANTHROPIC_BASE_URL={base_url} --env ANTHROPIC_API_KEY={credential} -- ./agent -p hello
  runner audit --report json=audit.json -- npm --version";

pub(super) const DOCTOR_EXIT_CODES: &str = "\
Everything is tried, each in a process of its own, and in the end a real run is made. Nothing is changed.

Exit codes:
  0  tier namespace: a run has namespaces of its own
  1  only tier inherited: a run takes the network of this container, which has loopback only
  2  usage error
  3  neither, or the probes and the real run do not agree

Examples:
  runner doctor
  runner doctor --json > doctor.json
  runner doctor --apparmor | sudo tee /etc/apparmor.d/runner";

pub(super) const SELFTEST_EXIT_CODES: &str = "\
A hostile client, built in, makes the attempts inside, and the same code makes them outside, where they reach \
nobody. Each line is a class of attempts, as its worst one:
  BLOCKED       refused inside, with this errno by this layer, and not refused outside
  THROUGH       it got out, or left no evidence where it must
  INCONCLUSIVE  neither is known, mostly since this machine refuses it outside as well; never a pass

Exit codes:
  0  nothing got through
  1  something got through
  2  usage error
  3  the run could not be made, or something is inconclusive and --strict was given

Examples:
  runner selftest
  runner selftest --json > selftest.json
  runner selftest --isolation inherited";

pub(super) const DIFF_EXIT_CODES: &str = "\
What differs between any two runs by its nature (times, ids, ports, digests of unstable files) is left out, by \
rules that are named in the answer.

Exit codes:
  0  nothing changed
  1  something changed
  2  usage error, or a report that cannot be read or is not complete

Examples:
  runner diff old.json new.json
  runner diff --json evidence-1 evidence-2 > diff.json";

pub(super) const VERIFY_EXIT_CODES: &str = "\
Exit codes:
  0  every file is as the manifest says, and there is no other
  1  something differs
  2  usage error, or a directory that cannot be read

Examples:
  runner verify evidence";

pub(super) const RUN_EXIT_CODES: &str = run_exit_codes!();

pub(super) const EXIT_CODES: &str = concat!(
    run_exit_codes!(),
    "\n  those of the other commands are in their own help\n\nExamples: `runner --help`"
);

pub(super) const EXAMPLES_AND_EXIT_CODES: &str = concat!(
    "\
Examples:
  runner case-b
      the reference client, the human report on standard output
  runner case-b --client ./agent --profile ./agent.toml
      a client of your own, told what to do by its profile
  runner case-b --report json=report.json
      the human report on standard output, the JSON report in a file
  runner run mine.toml --timeout 5min -- --verbose
      a case of your own, with one more argument for the client
  runner audit -- curl -s https://example.com
      any program, nothing expected of it: what does it try?
  runner case-b --out evidence
      every report, the output and the files of one run, to be checked by `runner verify evidence`
  runner case-b --baseline agent.lock
      the same, and fail where the client does anything that the lock file does not have
  runner diff old.json new.json
      what a client did otherwise in two runs
  runner policy init case mine > mine.toml
      a case file to start from

",
    run_exit_codes!(),
    "\n  those of the other commands are in their own help"
);
