//! Why a sandbox could not be set up: the step, its object, the kernel's errno, and what to do about it.

use nix::errno::Errno;
use serde::{Deserialize, Serialize};

/// One failed step. It travels from the stage and from init to the runner.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("cannot {step}{}: {}", object_text(object), errno_text(*errno))]
pub struct SetupError {
    pub step: Step,
    /// What the step was about: a path, a name, a value; may be empty.
    pub object: String,
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

/// The steps of set-up, in the order in which they are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    StartGuard,
    MakeTrees,
    StartStage,
    HandOverPipes,
    ReceivePlan,
    DropGroups,
    UserAndNetworkNamespace,
    WriteIdMaps,
    BecomeInsideUser,
    ArmDeathSignal,
    LoopbackUp,
    ReadNetwork,
    ForeignNetwork,
    InheritedNetwork,
    StubSocket,
    ResolverSocket,
    ListSockets,
    EventLoop,
    CloneInit,
    PrivateMounts,
    TakeSource,
    SourceChanged,
    RootFilesystem,
    MakeTarget,
    AttachSource,
    MountProc,
    PivotRoot,
    RemoveDevice,
    ReadOnlyRoot,
    HostName,
    OpenTrees,
    StandardInput,
    NoNewPrivileges,
    HideProcess,
    DropCapabilities,
    SetLimit,
    Landlock,
    LandlockAlone,
    Filter,
    Supervise,
    CloneClient,
    NewSession,
    Probe,
    Channel,
    Signals,
    Describe,
    TryOutside,
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
                "list sockets by sock_diag(7), without which no run can prove that all was sent"
            }
            Self::EventLoop => "set up the stub's event loop",
            Self::CloneInit => "make the pid, mount, ipc, uts and cgroup namespaces",
            Self::PrivateMounts => "make the mounts private",
            Self::TakeSource => "take a path that a rule names",
            Self::SourceChanged => {
                "take a path that a rule names: it is not the object that was checked"
            }
            Self::RootFilesystem => "mount a file system of the new root",
            Self::MakeTarget => "make a file of the new root",
            Self::AttachSource => "attach a path to the new root",
            Self::MountProc => "mount a fresh /proc",
            Self::PivotRoot => "enter the new root",
            Self::RemoveDevice => "take a device out of the new root",
            Self::ReadOnlyRoot => "make the new root read-only",
            Self::HostName => "set the host name",
            Self::OpenTrees => "open the home and the temporary directory",
            Self::StandardInput => "set standard input to /dev/null",
            Self::HideProcess => "close this process to others of its user",
            Self::NoNewPrivileges => "set no_new_privs",
            Self::DropCapabilities => "drop all capabilities",
            Self::SetLimit => "set a resource limit",
            Self::Landlock => "apply the Landlock rules",
            Self::LandlockAlone => "apply the Landlock rules, which stand alone here",
            Self::Filter => "install the system call filter",
            Self::Supervise => "start the supervisor",
            Self::CloneClient => "make the client's process",
            Self::NewSession => "start a session of its own",
            Self::Probe => "try the canaries",
            Self::Channel => "talk to the runner",
            Self::Signals => "watch for ended processes",
            Self::Describe => "read a path's status",
            Self::TryOutside => "try the canaries outside the sandbox",
            Self::CompleteSetUp => "complete the set-up",
        })
    }
}

/// What there was too little of, for whichever tier.
const SHORT: [Errno; 4] = [Errno::EAGAIN, Errno::ENOMEM, Errno::EMFILE, Errno::ENFILE];

impl SetupError {
    /// Whether it is the namespaces or their mounts that this host refuses, so that a tier without any may do.
    pub fn rules_out_namespaces(&self) -> bool {
        let errno = Errno::from_raw(self.errno);
        if SHORT.contains(&errno) {
            return false;
        }
        // Without the call no path can be taken; another errno is about this path.
        let is_the_call = matches!(errno, Errno::EPERM | Errno::ENOSYS);
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
        ) || (self.step == Step::TakeSource && is_the_call)
    }

    /// One line that says what to do, where the step and the errno tell.
    pub fn hint(&self) -> Option<&'static str> {
        let errno = Errno::from_raw(self.errno);
        match (self.step, errno) {
            (Step::TryOutside, Errno::EPERM) => Some(
                "a filter around the runner ends processes for that call: start the container with a seccomp profile that refuses it with an errno",
            ),
            (Step::CompleteSetUp | Step::StartGuard | Step::TryOutside, Errno::ETIMEDOUT) => Some(
                "a process of the sandbox is stopped, or this machine is overloaded; start the runner again",
            ),
            (Step::CompleteSetUp, Errno::ESRCH) => Some(
                "something outside the sandbox ended it: `sudo dmesg` names what the kernel ended for want of memory; start the runner again",
            ),
            (_, Errno::EAGAIN | Errno::ENOMEM) => Some(
                "raise the limits on processes and memory, as with `ulimit -u unlimited -v unlimited -d unlimited`",
            ),
            (_, Errno::EMFILE | Errno::ENFILE) => {
                Some("raise the limit of open files, as with `ulimit -n 1024`")
            }
            (_, Errno::EFBIG) => {
                Some("raise the limit of a file's length, as with `ulimit -f unlimited`")
            }
            (Step::UserAndNetworkNamespace, Errno::ENOSPC | Errno::EUSERS) => Some(
                "namespaces are limited to none or used up: run `sudo sysctl user.max_user_namespaces=10000 user.max_net_namespaces=10000`",
            ),
            (Step::CloneInit, Errno::ENOSPC | Errno::EUSERS) => Some(
                "namespaces are limited to none or used up: run `sudo sysctl user.max_pid_namespaces=10000 user.max_mnt_namespaces=10000 user.max_ipc_namespaces=10000 user.max_uts_namespaces=10000 user.max_cgroup_namespaces=10000`",
            ),
            (Step::UserAndNetworkNamespace, Errno::EPERM | Errno::EACCES) => Some(
                "user namespaces are refused here: on Debian run `sudo sysctl kernel.unprivileged_userns_clone=1`; in Docker add `--security-opt seccomp=unconfined`, or `--network none` for the tier inherited",
            ),
            (Step::UserAndNetworkNamespace, Errno::ENOSYS | Errno::EINVAL) => Some(
                "this kernel was built without user or network namespaces; a distribution kernel has both",
            ),
            (
                Step::WriteIdMaps
                | Step::LoopbackUp
                | Step::CloneInit
                | Step::PrivateMounts
                | Step::BecomeInsideUser,
                Errno::EPERM | Errno::EACCES,
            ) => Some(
                "the namespace came without its capabilities, as AppArmor does on Ubuntu 24.04: load the profile that `runner doctor --apparmor` prints, or run `sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`",
            ),
            (Step::HandOverPipes, Errno::EINVAL) => Some(
                "started by the root of a user namespace with too few ids: give it 65536 of them (/etc/subuid and /etc/subgid), or start the runner as an ordinary user",
            ),
            (Step::HandOverPipes | Step::DropGroups, Errno::EPERM | Errno::EINVAL) => Some(
                "started by a uid 0 that cannot become another user: one without CAP_CHOWN, CAP_SETGID and CAP_SETUID; start it as an ordinary user",
            ),
            (Step::Filter, Errno::EBUSY) => Some(
                "a seccomp filter around the runner has a listener already, and there can be only one: as in WSL 2 and in some other sandboxes; start the runner outside of it",
            ),
            (Step::Filter, Errno::EINVAL | Errno::ENOSYS) => Some(
                "this kernel or this container has no seccomp filters with user notification: Linux 5.19 (and for Landlock 6.2) or later is needed, and an engine that lets seccomp(2) through",
            ),
            (Step::Landlock, _) => Some(
                "Linux 6.2 or later is needed, with landlock in its list of security modules: boot with `lsm=landlock,…`",
            ),
            (Step::LandlockAlone, _) => Some(
                "without namespaces Landlock ABI 6 is needed: Linux 6.12 or later, with landlock in its list of security modules",
            ),
            (Step::InheritedNetwork, _) => Some(
                "start the container with `--network none`, or let it make namespaces of its own: in Docker, `--security-opt seccomp=unconfined`",
            ),
            (Step::ListSockets, _) => Some(
                "a kernel with CONFIG_INET_DIAG is needed: run `sudo modprobe tcp_diag`; in a container, an engine that lets socket(2) with NETLINK_SOCK_DIAG through",
            ),
            (Step::MakeTrees, _) => Some(
                "name a directory that can be written in TMPDIR, or give the container one: `--tmpfs /tmp`",
            ),
            (Step::TakeSource, Errno::EACCES) => Some(
                "the user who starts the runner must be able to read every path that the policy names",
            ),
            _ => None,
        }
    }
}

/// Puts step and object on an errno.
pub trait At<T> {
    /// The failure of `step`.
    fn at(self, step: Step) -> Result<T, SetupError>;
    /// The failure of `step` on `object`.
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

/// An error that is an errno, or holds one.
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

/// The errno inside an I/O error; `EIO` for the ones that the standard library makes itself.
pub fn errno_of(error: &std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}
