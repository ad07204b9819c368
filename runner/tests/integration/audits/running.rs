//! Start of an audited program, and the runner's exit code for the program's.

use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use nix::sched::{CpuSet, sched_getcpu, sched_setaffinity};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::{Audit, Audited, open_directory};
use crate::kit::{Run, fixture};
use crate::needs_sandbox;

#[test]
fn the_exit_code_is_the_programs_own() {
    needs_sandbox!();
    for code in [0, 1, 2, 3, 42, 255] {
        Audit::shell(&format!("exit {code}"))
            .run()
            .assert_code(code);
    }
    Audit::shell("kill -TERM $$").run().assert_code(128 + 15);
    Audit::shell("kill -KILL $$").run().assert_code(128 + 9);
}

#[test]
fn a_program_that_takes_too_long_is_ended_with_124() {
    needs_sandbox!();
    let audited = Audit::of(["sleep", "1000"]).option("--timeout=300ms").run();
    audited.assert_code(124);
    assert_eq!(audited.report["client"]["exit"], json!({"timeout": 300}));
}

#[test]
fn a_program_that_cannot_be_started_has_126_or_127_and_says_why() {
    needs_sandbox!();
    let directory = open_directory("/var/tmp");
    let file = |name: &str, mode: u32, content: &str| {
        use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
        let path = directory.path().join(name);
        let mut options = std::fs::OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&path)
            .unwrap();
        file.write_all(content.as_bytes()).unwrap();
        file.set_permissions(std::fs::Permissions::from_mode(mode))
            .unwrap();
        path
    };
    let text = file("text", 0o644, "");
    let no_interpreter = file("no-interpreter", 0o755, "#!/no/such/interpreter\n");
    let no_program = file("no-program", 0o755, "\u{7f}ELF");
    for (program, code, words) in [
        (
            "no-such-program-here".into(),
            127,
            "cannot find the program",
        ),
        (text.into_os_string(), 126, "is not an executable file"),
        (
            no_interpreter.into_os_string(),
            127,
            "its interpreter /no/such/interpreter does not exist",
        ),
        (no_program.into_os_string(), 126, "Exec format error"),
    ] {
        let audited = Audit::of([program]).run();
        audited.assert_code(code);
        assert!(audited.stderr.contains(words), "{}", audited.stderr);
    }
}

#[test]
fn what_the_audit_itself_cannot_do_is_125() {
    for option in [
        "--read=/no/such/path",
        "--write=/proc",
        "--no-such-option",
        "--report=json",
    ] {
        let output = Audit::of(["true"])
            .option(option)
            .command()
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(125), "{option}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty());
    }
}

#[test]
fn nothing_of_the_environment_is_inherited() {
    needs_sandbox!();
    let audit = Audit::shell("env | sort")
        .option("--env=GIVEN")
        .option("--env=SET=a=b");
    let mut command = audit.command();
    command
        .env("GIVEN", "from outside")
        .env("SECRET", "never shown");
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let own = |line: &&str| {
        !line.starts_with("PWD=") && !line.starts_with("_=") && !line.starts_with("OLDPWD=")
    };
    let lines: Vec<_> = text.lines().filter(own).collect();
    let expected = [
        "GIVEN=from outside",
        "HOME=/home/sandbox",
        "LANG=C.UTF-8",
        "PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
        "SET=a=b",
        "TERM=dumb",
        "TMPDIR=/tmp",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn a_static_program_is_audited_with_the_stub_as_its_provider() {
    needs_sandbox!();
    let client = fixture("deviant-client").with_file_name("../agent-cli");
    let audit = || {
        Audit::of([
            client.as_os_str(),
            "--print".as_ref(),
            "--output-format".as_ref(),
            "stream-json".as_ref(),
            "hello".as_ref(),
        ])
        .option("--env=AGENT_BASE_URL={base_url}")
        .option("--env=AGENT_API_KEY={credential}")
    };
    for audited in [audit().run(), audit().as_ordinary_user().run()] {
        audited.assert_code(0);
        assert_eq!(audited.requests(), ["HEAD /", "POST /v1/messages"]);
        assert_eq!(audited.attempts(), [""; 0]);
        let last = audited.stdout.lines().last().unwrap();
        let record: Value = serde_json::from_str(last).unwrap();
        assert_eq!(
            (&record["type"], &record["is_error"]),
            (&json!("result"), &json!(false))
        );
        assert_eq!(audited.report["case"]["name"], "audit");
        assert_eq!(audited.report["client"]["profile"], Value::Null);
        assert_eq!(audited.report["findings"]["count"], 0);
    }
}

#[test]
fn a_value_given_to_a_variable_stands_in_no_report_however_the_program_uses_it() {
    needs_sandbox!();
    let token = "tok-3141592653589793";
    let program = "import base64, http.client, os, socket, subprocess, sys, urllib.parse\n\
        token = os.environ['TOKEN']\n\
        print(token, file=sys.stderr)\n\
        subprocess.run(['/bin/true', token, '--key=' + token])\n\
        open('/home/sandbox/' + token, 'w').close()\n\
        os.path.exists('/home/sandbox/absent-' + token)\n\
        url = urllib.parse.urlsplit(os.environ['URL'])\n\
        to = http.client.HTTPConnection(url.netloc)\n\
        encoded = base64.b64encode(token.encode()).decode()\n\
        to.request('GET', '/x/' + token + '?q=' + token, headers={'x-token': token, 'x-other': encoded})\n\
        to.getresponse().read()\n\
        try: socket.getaddrinfo(token + '.example', 80)\n\
        except OSError: pass\n";
    let directory = open_directory("/tmp");
    let human = directory.path().join("human");
    let audited = Audit::of(["/usr/bin/python3", "-c", program, token])
        .option(format!("--env=TOKEN={token}"))
        .option("--env=URL={base_url}")
        .option(format!("--report=human={}", human.display()))
        .run();
    audited.assert_code(0);
    let json = audited.report.to_string();
    let human = std::fs::read_to_string(&human).unwrap();
    for (report, text) in [("json", &json), ("human", &human)] {
        assert!(!text.contains(token), "{report}: {text}");
        assert!(!text.contains("dG9rLTMxNDE1OTI2"), "{report}: {text}");
        assert!(text.contains("<value of TOKEN>"), "{report}: {text}");
    }
    let request = &audited.report["evidence"]["requests"][0];
    assert_eq!(request["path"], "/x/<value of TOKEN>");
    assert_eq!(request["query"], "q=<value of TOKEN>");
    assert_eq!(audited.names(), ["<value of token>.example"]);
    let secrets = audited.report["checks"].as_array().unwrap();
    let of_the_credential = secrets
        .iter()
        .find(|check| check["id"] == "secrets/credential-not-written");
    assert_eq!(of_the_credential.unwrap()["status"], "passed");
}

#[test]
fn an_audited_program_may_send_its_credential_in_either_header() {
    needs_sandbox!();
    let send = |header: &str| {
        let program = format!(
            "import http.client, os, urllib.parse\n\
            to = http.client.HTTPConnection(urllib.parse.urlsplit(os.environ['URL']).netloc)\n\
            to.request('POST', '/v1/messages', '{{}}', {{{header}}})\n\
            to.getresponse().read()\n"
        );
        Audit::of(["/usr/bin/python3", "-c", program.as_str()])
            .option("--env=KEY={credential}")
            .option("--env=URL={base_url}")
            .run()
    };
    let status = |audited: &Audited| {
        let checks = audited.report["checks"].as_array().unwrap().clone();
        let one = checks
            .into_iter()
            .find(|check| check["id"] == "secrets/credential-not-written");
        one.unwrap()["status"].as_str().unwrap().to_owned()
    };
    for header in [
        "'Authorization': 'Bearer ' + os.environ['KEY']",
        "'x-api-key': os.environ['KEY']",
    ] {
        let audited = send(header);
        audited.assert_code(0);
        assert_eq!(status(&audited), "passed", "{header}");
    }
    let elsewhere = send("'x-trace': os.environ['KEY']");
    assert_eq!(status(&elsewhere), "failed");
}

#[test]
fn an_attempt_is_a_finding_unless_the_command_line_says_that_it_is_none() {
    needs_sandbox!();
    let audit = || {
        Audit::of([
            "/usr/bin/python3",
            "-c",
            "import socket as s; print(s.socket().connect_ex(('192.0.2.1', 443)))",
        ])
    };
    let found = audit().run();
    found.assert_printed(0, &format!("{}\n", libc::ENETUNREACH));
    assert_eq!(found.attempts(), ["192.0.2.1:443 ENETUNREACH"]);
    assert_eq!(found.report["verdict"], "audited");
    assert_eq!(found.report["findings"]["attempts"], 1);
    let headline = "AUDITED, 1 finding: 1 attempt\n";
    assert!(found.stderr.starts_with(headline), "{}", found.stderr);
    let told = audit().option("--allow-attempt=inet:192.0.2.1:443").run();
    assert_eq!(told.attempts(), ["192.0.2.1:443 ENETUNREACH"]);
    assert_eq!(told.report["findings"]["count"], 0);
    let headline = "AUDITED, no findings\n";
    assert!(told.stderr.starts_with(headline), "{}", told.stderr);
    let other = audit().option("--allow-attempt=inet:192.0.2.1:80").run();
    assert_eq!(other.report["findings"]["attempts"], 1);
}

#[test]
fn refused_calls_are_expected_by_their_spelling() {
    needs_sandbox!();
    let program = "import ctypes, socket as s\n\
        libc = ctypes.CDLL(None, use_errno=True)\n\
        print(libc.syscall(425, 1, 0), ctypes.get_errno())\n\
        try: s.socket(s.AF_INET, s.SOCK_STREAM, 262)\n\
        except OSError as error: print(error.errno)\n\
        group = s.inet_aton('224.0.0.251') + s.inet_aton('127.0.0.1')\n\
        try: s.socket(s.AF_INET, s.SOCK_STREAM).setsockopt(0, s.IP_ADD_MEMBERSHIP, group)\n\
        except OSError as error: print(error.errno)";
    let audit = || Audit::of(["/usr/bin/python3", "-c", program]);
    let printed = format!(
        "-1 {}\n{}\n{}\n",
        libc::ENOSYS,
        libc::EPROTONOSUPPORT,
        libc::ENOPROTOOPT
    );
    let found = audit().run();
    found.assert_printed(0, &printed);
    let refused = |audited: &Audited| {
        let attempts = audited.report["evidence"]["attempts"].as_array().unwrap();
        let judged = attempts.iter().filter(|one| one["kind"] == "attempt");
        judged
            .map(|one| {
                format!(
                    "{} {}",
                    one["syscall"].as_str().unwrap(),
                    one["errno"].as_str().unwrap()
                )
            })
            .collect::<Vec<_>>()
    };
    let ledger = [
        "io_uring_setup ENOSYS",
        "socket EPROTONOSUPPORT",
        "setsockopt ENOPROTOOPT",
    ];
    assert_eq!(refused(&found), ledger);
    assert_eq!(found.report["findings"]["attempts"], 3);
    let told = audit()
        .option("--allow-attempt=io_uring_setup")
        .option("--allow-attempt=socket inet stream protocol 262")
        .option("--allow-attempt=setsockopt IP_ADD_MEMBERSHIP")
        .run();
    told.assert_printed(0, &printed);
    assert_eq!(told.report["findings"]["count"], 0);
    assert_eq!(refused(&told), ledger);
}

#[test]
fn more_programs_and_destinations_than_are_listed_are_counted_and_the_exit_code_stays() {
    needs_sandbox!();
    let gaps = |audited: &Audited| {
        let gaps = audited.report["evidence"]["gaps"].as_array().unwrap();
        let gap = |gap: &Value| format!("{} {}", gap["what"], gap["detail"]);
        gaps.iter().map(gap).collect::<Vec<_>>().join("\n")
    };
    let line = "i=0; while [ $i -lt 1010 ]; do /bin/true; i=$((i+1)); done; exit 7";
    let many = Audit::shell(line).run();
    many.assert_code(7);
    let expected = "\"cut\" \"11 started programs beyond those that are listed\"";
    assert_eq!(gaps(&many), expected);
    assert_eq!(many.report["verdict"], "audited");
    let program = "import socket\nfor port in range(1, 1006):\n \
        socket.socket().connect_ex(('192.0.2.1', port))";
    let far = Audit::of(["/usr/bin/python3", "-c", program]).run();
    far.assert_code(0);
    assert_eq!(far.report["findings"]["attempts"], 1005);
    let told = gaps(&far);
    assert!(told.starts_with("\"cut\" \""), "{told}");
    let headline = "AUDITED, 1 finding: 1,005 attempts\n";
    assert!(far.stderr.contains(headline), "{}", far.stderr);
}

#[test]
fn a_program_that_is_given_by_its_descriptor_is_listed_by_the_file_behind_it() {
    needs_sandbox!();
    let program = "import os\n\
        memory = os.memfd_create('made')\n\
        os.write(memory, open('/bin/true', 'rb').read())\n\
        for descriptor in (os.open('/bin/true', os.O_RDONLY), memory):\n \
        child = os.fork()\n \
        if child == 0: os.execve(descriptor, ['name'], {})\n \
        assert os.waitpid(child, 0)[1] == 0\n";
    let audit = || Audit::of(["/usr/bin/python3", "-c", program]);
    for audit in [audit(), audit().in_container()] {
        let audited = audit.run();
        audited.assert_code(0);
        let processes = audited.report["evidence"]["processes"].as_array().unwrap();
        let programs: Vec<_> = processes[1..]
            .iter()
            .map(|process| process["program"].as_str().unwrap())
            .collect();
        let [file, memory] = programs[..] else {
            panic!("{programs:?}")
        };
        assert!(file.ends_with("/bin/true"), "{file}");
        assert_eq!(memory, "/memfd:made");
    }
}

#[test]
fn without_a_stub_there_is_no_address_and_a_connection_to_it_is_an_attempt() {
    needs_sandbox!();
    let refused = Audit::of(["echo", "{base_url}"])
        .option("--stub=none")
        .run();
    refused.assert_code(125);
    let told = Audit::of(["echo", "{base_url}"]).run();
    let address = told.stdout.strip_prefix("http://127.0.0.1:").unwrap();
    assert!(address.trim_end().parse::<u16>().is_ok());
    // The program reads the port from the kernel's list.
    let find = "import socket\nfor line in open('/proc/net/tcp').read().splitlines()[1:]:\n address, state = line.split()[1], line.split()[3]\n port = int(address.split(':')[1], 16)\n if state == '0A' and port != 53: print(socket.socket().connect_ex(('127.0.0.1', port)))";
    let found = Audit::of(["/usr/bin/python3", "-c", find])
        .option("--stub=none")
        .run();
    found.assert_printed(0, "0\n");
    assert_eq!(found.attempts().len(), 1);
    assert_eq!(found.report["findings"]["attempts"], 1);
}

/// Starts an audit whose program runs until it is killed.
fn started() -> Child {
    let mut child = Audit::shell("echo started; sleep 1000")
        .command()
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = [0; 8];
    let stdout = child.stdout.as_mut().unwrap();
    stdout.read_exact(&mut line).unwrap();
    assert_eq!(&line, b"started\n");
    child
}

#[test]
fn a_signal_ends_the_program_and_leaves_a_report() {
    needs_sandbox!();
    let child = started();
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(
        told.starts_with("ERRORED, no findings in what was recorded: the run was interrupted"),
        "{told}"
    );
}

#[test]
fn a_lost_stub_makes_the_audit_errored_whatever_the_program_says() {
    needs_sandbox!();
    let child = started();
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    let stage = std::fs::read_to_string(children).unwrap();
    let stage: i32 = stage.split_whitespace().next().unwrap().parse().unwrap();
    kill(Pid::from_raw(stage), Signal::SIGKILL).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(output.stderr.starts_with(b"ERRORED"), "{:?}", output.stderr);
}

#[test]
fn the_policy_of_audits_is_no_case() {
    let output = Run::case("run")
        .argument("policies/audit.toml")
        .command()
        .current_dir("..")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let expected = "policies/audit.toml: expected a policy of the kind case, found audit";
    assert!(told.contains(expected), "{told}");
}

/// A background job of the shell that executed the runner ends during the run, and the job's child becomes the runner's
/// child.
#[test]
fn an_orphan_of_the_callers_lives_on() {
    needs_sandbox!();
    let directory = open_directory("/tmp");
    let pid = directory.path().join("orphan");
    let script = "(sleep 300 >/dev/null 2>&1 & echo $! >\"$1\"; sleep 1) & shift; exec \"$@\"";
    let ready = Audit::of(["sleep", "2"]).command();
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", script, "sh"]).arg(&pid);
    shell.arg(ready.get_program()).args(ready.get_args());
    let envs = ready.get_envs();
    shell.envs(envs.filter_map(|(name, value)| Some((name, value?))));
    let done = shell.output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    let pid: i32 = std::fs::read_to_string(&pid)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
    assert_eq!(name.unwrap(), "sleep\n");
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
}

/// Processors of this thread, as in proc_pid_status(5).
fn own_processors() -> String {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("Cpus_allowed:"));
    format!("{}\n", line.unwrap())
}

#[test]
fn program_has_the_processors_of_its_caller() {
    needs_sandbox!();
    let line = "exec grep Cpus_allowed: /proc/self/status";
    let all = own_processors();
    for audit in [Audit::shell(line), Audit::shell(line).as_ordinary_user()] {
        audit.run().assert_printed(0, &all);
    }
    // The children of a thread inherit its processors.
    let on_one = std::thread::spawn(move || {
        let mut one = CpuSet::new();
        one.set(sched_getcpu().unwrap()).unwrap();
        sched_setaffinity(Pid::from_raw(0), &one).unwrap();
        Audit::shell(line)
            .run()
            .assert_printed(0, &own_processors());
    });
    on_one.join().unwrap();
}
