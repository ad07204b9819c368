//! The client's process between its clone and its exec: the last restrictions, the self-check, then the program.
//!
//! Init prepares everything that it can before the clone. Until the runner has the listener of the filter, the process
//! shares init's descriptor table, and neither side closes a descriptor that the other uses. From the filter's
//! installation until then, the process makes no call that the filter notifies. If a step fails, the process sends the
//! error over the launch socket and does not start the program.

use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::path::Path;

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::sys::stat::{Mode, umask};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{chdir, execve, getppid, setsid};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use sys::fds::unshare_table_closing_from;
use sys::process::{reset_signals, run_in_shared_memory};

use super::error::{At as _, SetupError, Step};
use super::message::{self, Launch};
use super::plan::{Plan, Ports};
use super::proc::ProcView;
use super::weaken::Protection;
use super::{filter, landlock, limits, self_check};

/// The program, its arguments and its environment, as execve(2) takes them.
pub(super) struct Program {
    pub(super) path: CString,
    pub(super) arguments: Vec<CString>,
    pub(super) environment: Vec<CString>,
}

/// Restricts this process, runs the self-check and executes the program. Returns an exit code only on failure.
pub(super) fn run(
    plan: &Plan,
    ports: Ports,
    proc_view: &ProcView,
    program: &Program,
    socket: &OwnedFd,
) -> i32 {
    let message = match restrict_and_probe(plan, ports, proc_view, socket) {
        Ok(()) => {
            let Err(errno) = execve(&program.path, &program.arguments, &program.environment);
            Launch::NotStarted {
                errno: errno as i32,
            }
        }
        Err(error) => Launch::Failed { error },
    };
    // Sending fails only if init has ended, and then the kernel ends this process too.
    let _ = message::send(socket, &message, &[]);
    126
}

fn restrict_and_probe(
    plan: &Plan,
    ports: Ports,
    proc_view: &ProcView,
    socket: &OwnedFd,
) -> Result<(), SetupError> {
    expect(socket, |message| matches!(message, Launch::Settled))?;
    let init = getppid();
    if plan.is_inherited() {
        // A second means besides init, which ends all processes that it can see. A program may clear the signal.
        prctl::set_pdeathsig(Signal::SIGKILL).at(Step::ArmDeathSignal)?;
    }
    // A change of user clears the dumpable flag (prctl(2)). The supervisor must read the memory of this process, also
    // as a root without CAP_SYS_PTRACE in a container.
    prctl::set_dumpable(true).at(Step::Supervise)?;
    setsid().at(Step::NewSession)?;
    umask(Mode::from_bits_truncate(0o022));
    reset_signals();
    let directory = Path::new(&plan.client.directory);
    chdir(directory).at_object(Step::OpenTrees, directory.display())?;
    if plan.keeps(Protection::Limits) {
        limits::apply(&plan.limits)?;
        limits::prefer_as_victim(&proc_view.proc);
    }
    let landlock = landlock::restrict_client(plan, ports, proc_view)?;
    let surroundings = self_check::surroundings(plan, &proc_view.proc)?;
    let filter = filter::for_client(plan);
    let descriptor = filter.install_with_listener().at(Step::Filter)?;
    message::send(socket, &Launch::Listening { descriptor }, &[]).at(Step::Channel)?;
    expect(socket, |message| matches!(message, Launch::Detached))?;
    unshare_table_closing_from(3).at(Step::Channel)?;
    probe_in_child(socket, || {
        let report = raw(&self_check::read_back(proc_view, landlock, surroundings)?)?;
        message::send(socket, &Launch::ReadBack { report }, &[]).at(Step::Channel)?;
        let report = raw(&self_check::probe(plan, proc_view, (ports.stub, init)))?;
        message::send(socket, &Launch::Probed { report }, &[]).at(Step::Channel)
    })?;
    expect(socket, |message| matches!(message, Launch::Go))?;
    landlock::forbid_connections(plan)
}

fn raw(report: &impl Serialize) -> Result<Box<RawValue>, SetupError> {
    to_raw_value(report)
        .map_err(|_| Errno::EINVAL)
        .at(Step::Probe)
}

/// Runs `work` in a child, so that no object that a probe opened or made survives until the exec.
///
/// The child itself sends its error; the caller returns `ECHILD`.
fn probe_in_child(
    socket: &OwnedFd,
    work: impl FnOnce() -> Result<(), SetupError>,
) -> Result<(), SetupError> {
    let child = run_in_shared_memory(|| {
        let failed = work().map_err(|error| message::send(socket, &Launch::Failed { error }, &[]));
        i32::from(failed.is_err())
    });
    let child = child.at(Step::Probe)?;
    let status = waitpid(child, None).at(Step::Probe)?;
    if status == WaitStatus::Exited(child, 0) {
        return Ok(());
    }
    Err(Errno::ECHILD).at_object(Step::Probe, format_args!("{status:?}"))
}

fn expect(socket: &OwnedFd, wanted: fn(&Launch) -> bool) -> Result<(), SetupError> {
    match message::receive::<Launch>(socket).at(Step::Channel)? {
        Some((message, _)) if wanted(&message) => Ok(()),
        _ => Err(Errno::EPROTO).at(Step::Channel),
    }
}
