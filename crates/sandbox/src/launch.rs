//! The client's process between its clone and its exec: the last restrictions, the probe, then the program.
//!
//! It runs our code up to the exec and the client's from there. Everything that can be prepared was prepared
//! by init before the clone. Until the listener of its filter has gone to the runner, it shares init's table of
//! descriptors: neither side closes or replaces one that the other uses. From the filter on, only calls that it
//! does not notify are made until then. What fails is told over the launch socket, and the program is not started.

use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::path::Path;

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::sys::stat::{Mode, umask};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{chdir, execve, getppid, setsid};
use sys::fds::unshare_table_closing_from;
use sys::process::{Side, clone_process, reset_signals};

use super::error::{At as _, SetupError, Step};
use super::init::{Inside, Ports};
use super::message::{self, Launch};
use super::plan::Plan;
use super::weaken::Protection;
use super::{filter, landlock, limits, self_check};

/// The program, its arguments and its environment, as execve(2) takes them.
pub(super) struct Program {
    pub(super) path: CString,
    pub(super) arguments: Vec<CString>,
    pub(super) environment: Vec<CString>,
}

/// Restricts this process, probes, and becomes the program. Returns only where that failed, with the code to
/// exit with.
pub(super) fn run(
    plan: &Plan,
    ports: Ports,
    inside: &Inside,
    program: &Program,
    socket: &OwnedFd,
) -> i32 {
    let told = match restrict_and_probe(plan, ports, inside, socket) {
        Ok(()) => {
            let Err(errno) = execve(&program.path, &program.arguments, &program.environment);
            Launch::NotStarted {
                errno: errno as i32,
            }
        }
        Err(error) => Launch::Failed { error },
    };
    // Where this fails init is gone, and so are we in a moment.
    let _ = message::send(socket, &told, &[]);
    126
}

fn restrict_and_probe(
    plan: &Plan,
    ports: Ports,
    inside: &Inside,
    socket: &OwnedFd,
) -> Result<(), SetupError> {
    expect(socket, |told| matches!(told, Launch::Settled))?;
    let init = getppid();
    if plan.is_inherited() {
        // Behind init, which ends everything that it can see; a program may take it back.
        prctl::set_pdeathsig(Signal::SIGKILL).at(Step::ArmDeathSignal)?;
    }
    // A changed user has closed this process to others, prctl(2); of them the supervisor must read what its calls
    // point to, also as a root without CAP_SYS_PTRACE, as in a container.
    prctl::set_dumpable(true).at(Step::Supervise)?;
    setsid().at(Step::NewSession)?;
    umask(Mode::from_bits_truncate(0o022));
    reset_signals();
    let directory = Path::new(&plan.client.directory);
    chdir(directory).at_object(Step::OpenTrees, directory.display())?;
    if plan.keeps(Protection::Limits) {
        limits::apply(&plan.limits)?;
        limits::prefer_as_victim(&inside.proc);
    }
    let landlock = landlock::restrict_client(plan, ports, inside)?;
    let filter = filter::for_client(plan);
    let descriptor = filter.install_with_listener().at(Step::Filter)?;
    message::send(socket, &Launch::Listening { descriptor }, &[]).at(Step::Channel)?;
    expect(socket, |told| matches!(told, Launch::Detached))?;
    unshare_table_closing_from(3).at(Step::Channel)?;
    probe_in_child(socket, || {
        let report = Box::new(self_check::gather(
            plan, inside, ports.stub, init, landlock,
        )?);
        message::send(socket, &Launch::Probed { report }, &[]).at(Step::Channel)
    })?;
    expect(socket, |told| matches!(told, Launch::Go))?;
    landlock::forbid_connections(plan)
}

/// Runs `work` in a child, so that whatever a canary gets hold of is gone when the program starts. The child
/// tells its own failure; here it is enough to know of it.
fn probe_in_child(
    socket: &OwnedFd,
    work: impl FnOnce() -> Result<(), SetupError>,
) -> Result<(), SetupError> {
    match clone_process(0).at(Step::Probe)? {
        Side::Child => {
            let failed =
                work().map_err(|error| message::send(socket, &Launch::Failed { error }, &[]));
            std::process::exit(i32::from(failed.is_err()))
        }
        Side::Parent(child) => {
            let status = waitpid(child, None).at(Step::Probe)?;
            if status == WaitStatus::Exited(child, 0) {
                return Ok(());
            }
            Err(Errno::ECHILD).at_object(Step::Probe, format_args!("{status:?}"))
        }
    }
}

fn expect(socket: &OwnedFd, wanted: fn(&Launch) -> bool) -> Result<(), SetupError> {
    match message::receive::<Launch>(socket).at(Step::Channel)? {
        Some((told, _)) if wanted(&told) => Ok(()),
        _ => Err(Errno::EPROTO).at(Step::Channel),
    }
}
