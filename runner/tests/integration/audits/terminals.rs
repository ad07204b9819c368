//! Pseudo-terminals of the run's own.

use super::Audit;
use crate::needs_sandbox;

fn python(program: &str) -> Audit {
    Audit::of(["/usr/bin/python3", "-c", program])
}

#[test]
fn terminal_of_the_run_works() {
    needs_sandbox!();
    let program = "import fcntl, os, termios\n\
        main, own = os.openpty()\n\
        print(os.ttyname(own), os.listdir('/dev/pts') == ['0', 'ptmx'] or sorted(os.listdir('/dev/pts')))\n\
        os.write(own, b'hi\\n')\n\
        print(os.read(main, 10))\n\
        fcntl.ioctl(own, termios.TIOCSWINSZ, b'\\x05\\0\\x09\\0\\0\\0\\0\\0')\n\
        print(os.get_terminal_size(own))\n\
        for command in (termios.TIOCSTI, 0x541C):\n \
        try: fcntl.ioctl(own, command, b'x')\n \
        except OSError as error: print(error.errno)";
    let printed =
        "/dev/pts/0 ['0', 'ptmx']\nb'hi\\r\\n'\nos.terminal_size(columns=9, lines=5)\n1\n1\n";
    for audit in [python(program), python(program).as_ordinary_user()] {
        let audited = audit.run();
        let stdout = audited.stdout.replace(" True\n", " ['0', 'ptmx']\n");
        assert_eq!(
            (audited.code, stdout.as_str()),
            (Some(0), printed),
            "{}",
            audited.stderr
        );
    }
}

#[test]
fn program_starts_with_a_terminal_of_the_run() {
    needs_sandbox!();
    let program = "import os, pty, sys\n\
        pid, main = pty.fork()\n\
        if pid == 0: os.execv('/bin/sh', ['sh', '-c', 'test -t 0 && echo yes; exec 3</dev/tty && echo own'])\n\
        said = b''\n\
        try:\n \
        while True: said += os.read(main, 100)\n\
        except OSError: pass\n\
        print(said.split(), os.waitpid(pid, 0)[1])";
    let audited = python(program).run();
    // /dev/tty is not shown: only the terminal's own name leads to it.
    assert_eq!(audited.code, Some(0), "{}", audited.stderr);
    assert!(audited.stdout.starts_with("[b'yes'"), "{}", audited.stdout);
}

#[test]
fn number_of_terminals_is_limited() {
    needs_sandbox!();
    let program = "import os\n\
        opened = []\n\
        try:\n \
        while True: opened.append(os.open('/dev/ptmx', os.O_RDWR | os.O_NOCTTY))\n\
        except OSError as error: print(len(opened), error.errno)";
    let printed = format!("64 {}\n", libc::ENOSPC);
    python(program).run().assert_printed(0, &printed);
}

#[test]
fn container_shows_no_terminal_of_its_own() {
    needs_sandbox!();
    let program = "import os\n\
        try: os.open('/dev/ptmx', os.O_RDWR | os.O_NOCTTY)\n\
        except OSError as error: print(error.errno)";
    let audits = [
        python(program).in_container(),
        python(program).in_container().as_ordinary_user(),
    ];
    for audit in audits {
        audit
            .run()
            .assert_printed(0, &format!("{}\n", libc::EACCES));
    }
}
