//! Help texts of more than one line.

pub(super) const CLIENT: &str = "Client";
pub(super) const PROGRAM: &str = "Program";
pub(super) const SANDBOX: &str = "Sandbox";
pub(super) const OUTPUT: &str = "Output";

pub(super) const ABOUT: &str =
    "Runs an agent client in a sealed sandbox and proves what it sends, writes and tries";

pub(super) const LONG_ABOUT: &str = "\
Runs an agent client in a sealed sandbox and proves what it sends, writes and tries.

The client gets a temporary home, a network that has loopback only, and a provider stub that answers \
it. What it sends, prints, writes and tries is collected outside the client and compared with what the case \
expects. The verdict says what was proved, what was seen, and what was not proved.";

macro_rules! run_exit_codes {
    () => {
        "\
Exit codes:
  0  passed: every check of the case passed
  1  failed: a check failed, a client time-out included
  2  usage or policy error, or an output that cannot be opened; nothing was run
  3  errored: no sandbox, evidence lost, or the run interrupted"
    };
}

pub(super) const AUDIT_EXIT_CODES: &str = "\
The program sees the system's directories read-only, its own directory, an empty home, and a network with loopback \
only. Its output is passed on. The report goes to standard error.

Exit codes:
  the program's own, or 128 + N if signal N ended it
  123  a gate failed: a finding of --fail-on, or a difference from the lock file of --baseline
  124  the program ran longer than --timeout
  125  the audit itself failed: wrong use, no lock file, no sandbox, or evidence lost
  126  the program cannot be executed
  127  the program, its loader or its interpreter does not exist, or is not shown
  Of several, the first of this order counts: 125, 124, 126 or 127, 123, the program's own.

Examples:
  runner audit -- curl -s https://example.com
  runner audit --fail-on attempts,credential -- ./agent --version
  runner audit --read . -- python3 build.py
  runner audit --env ANTHROPIC_BASE_URL={base_url} --env ANTHROPIC_API_KEY={credential} -- ./agent -p hello
  runner audit --report json=audit.json -- npm --version";

pub(super) const DOCTOR_EXIT_CODES: &str = "\
A case and an audit are run, and each further feature is tested in a process of its own. The machine is not changed.

Exit codes:
  0  isolation `namespace`: a run has namespaces of its own
  1  isolation `inherited` only: a run uses the network of this container, which has loopback only
  2  usage error
  3  neither

Examples:
  runner doctor
  runner doctor --json > doctor.json
  runner doctor --apparmor | sudo tee /etc/apparmor.d/runner";

pub(super) const SELFTEST_EXIT_CODES: &str = "\
A built-in hostile client makes the attempts inside. The same code makes them outside, at harmless targets. \
Each line shows a class of attempts by its worst attempt:
  BLOCKED       refused inside, with this errno by this layer, and not refused outside
  THROUGH       it left the sandbox, or the ledger does not have it
  INCONCLUSIVE  not testable here, usually because this machine refuses it outside too; never a pass

Exit codes:
  0  nothing got through
  1  something got through
  2  usage error
  3  no run was possible, or something is inconclusive with --strict

Examples:
  runner selftest
  runner selftest --json > selftest.json
  runner selftest --isolation inherited";

pub(super) const DIFF_EXIT_CODES: &str = "\
Facts that differ between any two runs (times, ids, ports, digests of unstable files) are left out. The answer \
lists the rules that left them out.

Exit codes:
  0  nothing changed
  1  something changed
  2  usage error, or a report that cannot be read or is not complete

Examples:
  runner diff old.json new.json
  runner diff --json evidence-1 evidence-2 > diff.json";

pub(super) const VERIFY_EXIT_CODES: &str = "\
Exit codes:
  0  each file matches SHA256SUMS and the report, and there is no other file
  1  something differs
  2  usage error, or a directory that cannot be read

Examples:
  runner verify evidence";

pub(super) const INIT_EXIT_CODES: &str = "\
Exit codes:
  0  the file is written, and accepts all that the program did
  1  the file is written, and no rule accepts something that the program did
  2  usage error, or the file exists or cannot be written
  3  no run was possible, or the program did not end by itself

Examples:
  runner init agent.toml --env OPENAI_BASE_URL={base_url}/v1 --env OPENAI_API_KEY={credential} -- ./agent.py hello
  runner run agent.toml";

pub(super) const RUN_EXIT_CODES: &str = run_exit_codes!();

pub(super) const CASES_EXIT_CODES: &str = concat!(
    "\
A directory stands for its files *.toml with schema = \"runner.case/1\". Several cases are run one after another, \
sorted by name, with one report of all for each --report. --out has a directory for each case.

",
    run_exit_codes!(),
    "\n  of several cases, the first of this order counts: 2, 3, 1, 0

Examples:
  runner run mine.toml --timeout 5min -- --verbose
  runner run cases --report junit=cases.xml --out evidence"
);

pub(super) const EXIT_CODES: &str = concat!(
    run_exit_codes!(),
    "\n  other commands list theirs in their own help\n\nExamples: `runner --help`"
);

pub(super) const EXAMPLES_AND_EXIT_CODES: &str = concat!(
    "\
Examples:
  runner case-b
      run the reference client, and print the human report
  runner case-b --client ./agent --profile ./agent.toml
      run your own client with its profile
  runner case-b --report json=report.json
      also write the JSON report to a file
  runner run mine.toml --timeout 5min -- --verbose
      run your own case, with one more argument for the client
  runner audit -- curl -s https://example.com
      run any program, and report what it tries
  runner case-b --out evidence
      keep all reports, the output and the files; `runner verify evidence` checks them
  runner case-b --baseline agent.lock
      fail if the behaviour differs from the lock file
  runner diff old.json new.json
      compare the behaviour of two runs
  runner policy init case mine > mine.toml
      print a case file to start from

",
    run_exit_codes!(),
    "\n  other commands list theirs in their own help"
);
