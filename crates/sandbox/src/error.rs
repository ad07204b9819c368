//! Errors of the set-up of a sandbox: the failed step, its object, and the kernel's errno.

use nix::errno::Errno;
use serde::{Deserialize, Serialize};
use sys::errno_of;

/// A failed step of the set-up. The stage and init send this error to the runner as JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("cannot {step}{}: {}", object_text(object), errno_text(*errno))]
pub struct SetupError {
    /// Failed step.
    pub step: Step,
    /// Object of the step: a path, a name, a value; may be empty.
    pub object: String,
    /// The errno that the step failed with, as a raw number.
    pub errno: i32,
}

fn object_text(object: &str) -> String {
    if object.is_empty() {
        String::new()
    } else {
        format!(" ({object})")
    }
}

fn errno_text(errno: i32) -> String {
    let errno = Errno::from_raw(errno);
    format!("{errno:?}, {}", errno.desc())
}

/// Steps of the set-up, about in their order; [`crate`] has the exact one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Starts the guard process of the temporary directories (isolation `inherited`, selftest).
    StartGuard,
    /// Makes a temporary directory on disk, in the guard.
    MakeTrees,
    /// Starts the stage as a fresh exec, with its sockets, pipes and cgroup.
    StartStage,
    /// Drops root's supplementary groups.
    DropGroups,
    /// Unshares the user and the network namespace.
    UserAndNetworkNamespace,
    /// Gives the output pipes to the client's host user.
    HandOverPipes,
    /// Receives and decodes the plan, in the stage.
    ReceivePlan,
    /// Writes the uid and gid maps.
    WriteIdMaps,
    /// Changes to the mapped user and group.
    BecomeInsideUser,
    /// Sets the parent-death signal and compares the parent with the plan.
    ArmDeathSignal,
    /// Sets the loopback device up.
    LoopbackUp,
    /// Lists links, addresses and routes.
    ReadNetwork,
    /// Rejects a new network namespace that has more than loopback.
    ForeignNetwork,
    /// Rejects a container network that has more than loopback.
    InheritedNetwork,
    /// Binds the sockets of the stub.
    StubSocket,
    /// Binds the socket of the resolver.
    ResolverSocket,
    /// Opens the sock_diag(7) socket and looks up the stub's.
    ListSockets,
    /// Makes the event loop of the stub.
    EventLoop,
    /// Clones init into the other namespaces.
    CloneInit,
    /// Makes every mount of the new mount namespace private.
    PrivateMounts,
    /// Opens a host path as a detached, sealed mount, or for a Landlock rule.
    TakeSource,
    /// Rejects a host path whose device or inode differs from the plan.
    SourceChanged,
    /// Mounts a tmpfs of the new root.
    RootFilesystem,
    /// Makes a file, directory or link of the new root.
    MakeTarget,
    /// Attaches a detached mount to the new root.
    AttachSource,
    /// Mounts procfs in the new root.
    MountProc,
    /// Enters the new root and detaches the old one.
    PivotRoot,
    /// Removes a device from /dev of the new root.
    RemoveDevice,
    /// Remounts the new root read-only.
    ReadOnlyRoot,
    /// Sets the host name.
    HostName,
    /// Opens the client's home, temporary and working directory.
    OpenTrees,
    /// Opens /dev/null as standard input.
    StandardInput,
    /// Sets no_new_privs.
    NoNewPrivileges,
    /// Makes a process non-dumpable.
    HideProcess,
    /// Empties the capability sets.
    DropCapabilities,
    /// Sets a resource limit of the client.
    SetLimit,
    /// Applies the Landlock rules, with namespaces as a second layer.
    Landlock,
    /// Applies the Landlock rules of isolation `inherited`, without namespaces.
    LandlockAlone,
    /// Installs the seccomp filter.
    Filter,
    /// Starts the supervisor, or makes the client's process readable for it.
    Supervise,
    /// Clones the client's process, or ends it on request.
    CloneClient,
    /// Starts a session (setsid(2)).
    NewSession,
    /// Reads the layers back and runs the canary, inside.
    Probe,
    /// Sends or receives a message between the processes of the sandbox.
    Channel,
    /// Waits for child processes: signalfd, poll, /proc.
    Signals,
    /// Reads the status of a path.
    Describe,
    /// Makes a socket on the host that a probe of the canary tries to reach.
    CanaryTarget,
    /// Runs the canary outside the sandbox.
    TryOutside,
    /// Waits for the set-up to complete, in the runner.
    CompleteSetUp,
}

impl std::fmt::Display for Step {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::StartGuard => "start the guard of the temporary directories",
            Self::MakeTrees => "make a temporary directory",
            Self::StartStage => "start the stage",
            Self::HandOverPipes => "give the output pipes to the client's user",
            Self::ReceivePlan => "receive the plan",
            Self::DropGroups => "drop the supplementary groups",
            Self::UserAndNetworkNamespace => "make a user namespace and a network namespace",
            Self::WriteIdMaps => "write the user and group id maps",
            Self::BecomeInsideUser => "become the user of the namespace",
            Self::ArmDeathSignal => "arm the death signal",
            Self::LoopbackUp => "set the loopback device up",
            Self::ReadNetwork => "list links, addresses and routes",
            Self::ForeignNetwork => "seal the network: it has more than loopback",
            Self::InheritedNetwork => {
                "share the network of this container: it has more than loopback"
            }
            Self::StubSocket => "bind the stub's socket",
            Self::ResolverSocket => "bind the resolver's socket",
            Self::ListSockets => {
                "list sockets by sock_diag(7), which a run needs to prove that all bytes have arrived"
            }
            Self::EventLoop => "set up the stub's event loop",
            Self::CloneInit => "make the pid, mount, ipc, uts and cgroup namespaces",
            Self::PrivateMounts => "make the mounts private",
            Self::TakeSource => "open a path that a rule names",
            Self::SourceChanged => "open a path that a rule names: it was replaced after the check",
            Self::RootFilesystem => "mount a file system of the new root",
            Self::MakeTarget => "make a file of the new root",
            Self::AttachSource => "attach a path to the new root",
            Self::MountProc => "mount a fresh /proc",
            Self::PivotRoot => "enter the new root",
            Self::RemoveDevice => "remove a device from the new root",
            Self::ReadOnlyRoot => "make the new root read-only",
            Self::HostName => "set the host name",
            Self::OpenTrees => "open the home and the temporary directory",
            Self::StandardInput => "set standard input",
            Self::HideProcess => "protect this process from others of its user",
            Self::NoNewPrivileges => "set no_new_privs",
            Self::DropCapabilities => "drop all capabilities",
            Self::SetLimit => "set a resource limit",
            Self::Landlock => "apply the Landlock rules",
            Self::LandlockAlone => "apply the Landlock rules without namespaces",
            Self::Filter => "install the system call filter",
            Self::Supervise => "start the supervisor",
            Self::CloneClient => "make the client's process",
            Self::NewSession => "start a session of its own",
            Self::Probe => "run the canary",
            Self::Channel => "exchange messages with the runner",
            Self::Signals => "watch for ended processes",
            Self::Describe => "read a path's status",
            Self::CanaryTarget => "make a target of the canary",
            Self::TryOutside => "run the canary outside the sandbox",
            Self::CompleteSetUp => "complete the set-up",
        })
    }
}

/// Errnos of exhausted resources, which no other isolation avoids.
pub(crate) const EXHAUSTED: [Errno; 4] =
    [Errno::EAGAIN, Errno::ENOMEM, Errno::EMFILE, Errno::ENFILE];

impl SetupError {
    /// Checks whether the host refuses namespaces or their mounts, so that isolation `inherited` may still work.
    pub fn rules_out_namespaces(&self) -> bool {
        let errno = Errno::from_raw(self.errno);
        if EXHAUSTED.contains(&errno) {
            return false;
        }
        // EPERM and ENOSYS are about open_tree(2) itself, any other errno about this path.
        let is_call_refused = matches!(errno, Errno::EPERM | Errno::ENOSYS);
        matches!(
            self.step,
            Step::HandOverPipes
                | Step::DropGroups
                | Step::UserAndNetworkNamespace
                | Step::WriteIdMaps
                | Step::BecomeInsideUser
                | Step::LoopbackUp
                | Step::ResolverSocket
                | Step::CloneInit
                | Step::PrivateMounts
                | Step::RootFilesystem
                | Step::AttachSource
                | Step::MountProc
                | Step::PivotRoot
                | Step::ReadOnlyRoot
                | Step::HostName
        ) || (self.step == Step::TakeSource && is_call_refused)
            // With namespaces the client has another user, whose process this root may not read.
            || (self.step == Step::Supervise && errno == Errno::EACCES)
    }
}

/// Conversion of an errno into a [`SetupError`] with step and object.
pub trait At<T> {
    /// Names the failed step.
    fn at(self, step: Step) -> Result<T, SetupError>;
    /// Names the failed step and its object.
    fn at_object(self, step: Step, object: impl std::fmt::Display) -> Result<T, SetupError>;
}

impl<T, E: AsErrno> At<T> for Result<T, E> {
    fn at(self, step: Step) -> Result<T, SetupError> {
        self.at_object(step, "")
    }

    fn at_object(self, step: Step, object: impl std::fmt::Display) -> Result<T, SetupError> {
        self.map_err(|error| SetupError {
            step,
            object: object.to_string(),
            errno: error.as_errno() as i32,
        })
    }
}

/// Conversion of an error into an errno.
pub(crate) trait AsErrno {
    fn as_errno(&self) -> Errno;
}

impl AsErrno for Errno {
    fn as_errno(&self) -> Errno {
        *self
    }
}

impl AsErrno for std::io::Error {
    fn as_errno(&self) -> Errno {
        errno_of(self)
    }
}
