//! Probes by other processes, by namespaces, and by inherited resources.

use std::ffi::OsString;
use std::fs;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::AsRawFd as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use caps::CapSet;
use nix::errno::Errno;
use nix::sched::{CloneFlags, setns};
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::sys::uio::{RemoteIoVec, process_vm_readv, process_vm_writev};
use nix::sys::wait::waitpid;
use nix::sys::{prctl, ptrace};
use nix::unistd::Pid;
use sys::attempt::{
    self,
    Argument::{self, Buffer, Number, Target, Words},
    RawCall, call,
};
use sys::errno_of;
use sys::fds::survives_exec;
use sys::process::{Side, clone_process, get_descriptor, open_pidfd};
use sys::seccomp::{Instruction, install_with_listener};

use super::FILTERED;
use crate::own_program::{CRASH, HOSTILE_ARGUMENT, own_file};
use crate::probe::{
    ANY,
    Aim::{self, Word},
    Class, Layer, LedgerEntry, NOTHING, Probe, Refusal, SHARED, TwinEnv, by, class, word,
};

const UNKNOWN: &[Refusal] = &[by(Layer::Filter, Errno::ENOSYS)];
const UNSEEN: &[Refusal] = &[by(Layer::PidNamespace, Errno::ESRCH)];
/// Refusals like [`UNSEEN`]. If the runner is pid 1 of a container, its pid is that of init inside.
const UNSEEN_OR_INIT: &[Refusal] = &[
    by(Layer::PidNamespace, Errno::ESRCH),
    by(Layer::Landlock, Errno::EPERM),
];
const SCOPED: &[Refusal] = &[by(Layer::Landlock, Errno::EPERM)];
/// Refusals of files in /proc.
pub(super) const HIDDEN: &[Refusal] = &[by(Layer::Landlock, Errno::EACCES)];
/// Refusals of files in /proc. If a container covers parts of /proc, the new root has no /proc.
pub(super) const ABSENT: &[Refusal] = &[by(Layer::OwnRoot, Errno::ENOENT)];
const UNCAPPED: &[Refusal] = &[by(Layer::Capabilities, NOTHING)];

/// Probe at the victim.
const fn at_victim(probe: Probe) -> Probe {
    probe
        .at(&[Aim::Victim])
        .blocked(FILTERED, LedgerEntry::None)
}

/// Probe at init of the sandbox, with a twin at the victim. The filter knows its pid only in a pid namespace.
const fn at_init(probe: Probe) -> Probe {
    at_victim(probe)
        .aim_inside(&[Aim::Init])
        .inherited(&[], LedgerEntry::None)
}

/// Probe at a file of init in /proc, with a twin at a file of the victim.
macro_rules! init_file {
    ($name:literal $make:ident $file:literal) => {
        Probe::new($name, $make)
            .at(&[Aim::InitDirectory, Word($file)])
            .twin_at(&[Aim::VictimDirectory, Word($file)])
            .blocked(HIDDEN, LedgerEntry::None)
            .without_proc(ABSENT)
    };
}
pub(super) use init_file;

const fn namespace(name: &'static str, arguments: &'static [Argument]) -> Probe {
    Probe::raw(name, RawCall::UNSHARE, arguments)
        .twin_in(TwinEnv::OwnNamespaces)
        .blocked(FILTERED, LedgerEntry::None)
}

#[rustfmt::skip]
pub(super) const CLASSES: &[Class] = &[
    class("processes/memory", "memory and descriptors of other processes", &[
        at_victim(Probe::new("trace", trace)).canary("ptrace", ANY),
        at_victim(Probe::new("read", read_memory)).twin_arrives(&[Errno::EFAULT]),
        at_victim(Probe::new("write", write_memory)).twin_arrives(&[Errno::EFAULT]),
        at_victim(Probe::new("descriptor", take_descriptor)).blocked(UNSEEN, LedgerEntry::None).inherited(FILTERED, LedgerEntry::None),
        init_file!("file" open_below "mem").canary("init-memory", ANY),
        init_file!("environment" open_below "environ"),
        init_file!("maps" open_below "maps"),
        init_file!("vector" open_below "auxv"),
        init_file!("file-write" open_below_to_write "mem"),
        init_file!("name-write" open_below_to_write "comm"),
        init_file!("score-write" open_below_to_write "oom_score_adj"),
    ]),
    class("processes/init", "the first process of the sandbox, which ends the client", &[
        at_init(Probe::new("trace", trace)),
        at_init(Probe::new("read", read_memory)).twin_arrives(&[Errno::EFAULT]),
        at_init(Probe::new("write", write_memory)).twin_arrives(&[Errno::EFAULT]),
        at_init(Probe::new("descriptor", take_descriptor)),
        at_init(Probe::new("signal-descriptor", signal_by_descriptor)).blocked(SCOPED, LedgerEntry::None).inherited(&[], LedgerEntry::None),
        at_init(Probe::new("compare", compare)),
        at_init(Probe::raw("limits", RawCall::PRLIMIT, &[Target(0), Number(libc::RLIMIT_NOFILE as i64), Number(0), Buffer])),
        at_init(Probe::raw("priority", RawCall::SETPRIORITY, &[Number(0), Target(0), Number(19)])),
        // SCHED_IDLE, and struct sched_param of 0.
        at_init(Probe::raw("scheduler", RawCall::SCHED_SETSCHEDULER, &[Target(0), Number(5), Words(&[0])])),
        // IOPRIO_WHO_PROCESS, the idle class.
        at_init(Probe::raw("io-priority", RawCall::IOPRIO_SET, &[Number(1), Target(0), Number(3 << 13)])),
    ]),
    class("processes/signals", "signals to other processes", &[
        at_victim(Probe::new("signal", signal)).blocked(UNSEEN, LedgerEntry::None).inherited(SCOPED, LedgerEntry::None),
        at_init(Probe::new("init", signal)).blocked(SCOPED, LedgerEntry::None).canary("signal", SHARED),
    ]),
    class("processes/supervisor", "the supervisor: stopped, replaced, blinded", &[
        Probe::new("signal", signal).at(&[Aim::Supervisor]).blocked(UNSEEN_OR_INIT, LedgerEntry::None).inherited(SCOPED, LedgerEntry::None),
        Probe::new("listener", listen).blocked(&[by(Layer::Filter, Errno::EBUSY)], LedgerEntry::None),
        Probe::new("unreadable", hide).blocked(&[by(Layer::Supervisor, NOTHING)], LedgerEntry::Call("prctl")),
    ]),
    class("processes/namespaces", "namespaces made and joined, where capabilities come back", &[
        Probe::raw("unshare", RawCall::UNSHARE, &[Number(libc::CLONE_NEWUSER as i64)]).blocked(FILTERED, LedgerEntry::None).canary("unshare", ANY),
        namespace("network", &[Number(libc::CLONE_NEWNET as i64)]),
        namespace("mount", &[Number(libc::CLONE_NEWNS as i64)]),
        namespace("pid", &[Number(libc::CLONE_NEWPID as i64)]),
        namespace("ipc", &[Number(libc::CLONE_NEWIPC as i64)]),
        namespace("uts", &[Number(libc::CLONE_NEWUTS as i64)]),
        namespace("cgroup", &[Number(libc::CLONE_NEWCGROUP as i64)]),
        Probe::new("clone", |_| clone(libc::CLONE_NEWUSER)).blocked(FILTERED, LedgerEntry::None),
        Probe::new("clone-network", |_| clone(libc::CLONE_NEWNET)).twin_in(TwinEnv::OwnNamespaces).blocked(FILTERED, LedgerEntry::None),
        Probe::new("clone-both", |_| clone(libc::CLONE_NEWUSER | libc::CLONE_NEWNET)).blocked(FILTERED, LedgerEntry::None),
        Probe::new("clone3", |_| attempt::clone3(libc::CLONE_NEWUSER).map(|()| String::new())).blocked(UNKNOWN, LedgerEntry::None),
        Probe::new("clone3-plain", |_| attempt::clone3(0).map(|()| String::new())).blocked(UNKNOWN, LedgerEntry::None),
        Probe::new("join", join).twin_in(TwinEnv::OwnNamespaces).blocked(FILTERED, LedgerEntry::None).canary("setns", ANY),
    ]),
    class("processes/capabilities", "remaining capabilities", &[
        Probe::new("sets", |_| held(&[CapSet::Effective, CapSet::Permitted, CapSet::Inheritable, CapSet::Ambient]))
            .twin_in(TwinEnv::OwnNamespaces).blocked(UNCAPPED, LedgerEntry::None),
        // Emptying the bounding set needs CAP_SETPCAP in the container's user namespace (capabilities(7)).
        Probe::new("bounding", |_| held(&[CapSet::Bounding]))
            .twin_in(TwinEnv::OwnNamespaces).blocked(UNCAPPED, LedgerEntry::None).inherited(&[], LedgerEntry::None),
    ]),
    class("processes/set-id", "set-user-ID and set-group-ID programs", &[Probe::new("rights", set_id).blocked(&[by(Layer::NoNewPrivileges, NOTHING)], LedgerEntry::None)]),
    class("processes/descriptors", "descriptors inherited from the runner's caller", &[Probe::new("inherited", descriptors).blocked(&[by(Layer::Descriptors, NOTHING)], LedgerEntry::None)]),
    class("processes/cores", "core dumps, and programs that collect them", &[Probe::new("crash", crash).twin_in(TwinEnv::CoreFiles).blocked(&[by(Layer::Limits, NOTHING)], LedgerEntry::None)]),
];

fn process(aims: &[OsString]) -> Result<Pid, Errno> {
    let number = word(aims, 0)?.parse().map_err(|_| Errno::EDESTADDRREQ)?;
    let process = Pid::from_raw(number);
    // In another pid namespace the number may be this process's own pid by chance.
    if process == Pid::this() {
        return Err(Errno::EDESTADDRREQ);
    }
    Ok(process)
}

/// Traces a process. PTRACE_SEIZE does not stop its target, and ends with the tracer.
fn trace(aims: &[OsString]) -> Result<String, Errno> {
    ptrace::seize(process(aims)?, ptrace::Options::empty()).map(|()| String::new())
}

/// Memory to read and write in another process of this program. Address randomisation may move it there.
static PLACE: AtomicU64 = AtomicU64::new(0);

fn place() -> [RemoteIoVec; 1] {
    [RemoteIoVec {
        base: std::ptr::from_ref(&PLACE).addr(),
        len: size_of_val(&PLACE),
    }]
}

fn read_memory(aims: &[OsString]) -> Result<String, Errno> {
    let mut word = [0; 8];
    let mut local = [IoSliceMut::new(&mut word)];
    process_vm_readv(process(aims)?, &mut local, &place()).map(|_| String::new())
}

fn write_memory(aims: &[OsString]) -> Result<String, Errno> {
    let word = PLACE.load(Ordering::Relaxed).to_ne_bytes();
    let local = [IoSlice::new(&word)];
    process_vm_writev(process(aims)?, &local, &place()).map(|_| String::new())
}

fn take_descriptor(aims: &[OsString]) -> Result<String, Errno> {
    let pidfd = open_pidfd(process(aims)?.as_raw(), 0)?;
    get_descriptor(pidfd, 0).map(|_| String::new())
}

/// Opens a file for reading. Its path is the joined targets.
pub(super) fn open_below(aims: &[OsString]) -> Result<String, Errno> {
    let path: OsString = aims.iter().map(OsString::as_os_str).collect();
    fs::File::open(path)
        .map(|_| String::new())
        .map_err(errno_of)
}

fn open_below_to_write(aims: &[OsString]) -> Result<String, Errno> {
    let path: OsString = aims.iter().map(OsString::as_os_str).collect();
    let file = fs::OpenOptions::new().write(true).open(path);
    file.map(|_| String::new()).map_err(errno_of)
}

/// Sends SIGURG, which is ignored by default (signal(7)).
fn signal(aims: &[OsString]) -> Result<String, Errno> {
    kill(process(aims)?, Signal::SIGURG).map(|()| String::new())
}

fn signal_by_descriptor(aims: &[OsString]) -> Result<String, Errno> {
    let pidfd = open_pidfd(process(aims)?.as_raw(), 0)?;
    let number = Number(i64::from(Signal::SIGURG as i32));
    let pidfd = Number(pidfd.as_raw_fd().into());
    call(RawCall::PIDFD_SEND_SIGNAL, &[pidfd, number], &[]).map(|()| String::new())
}

/// Compares the memory of a process with the own one (kcmp(2), KCMP_VM).
fn compare(aims: &[OsString]) -> Result<String, Errno> {
    let own = Number(Pid::this().as_raw().into());
    let other = Number(process(aims)?.as_raw().into());
    call(RawCall::KCMP, &[own, other, Number(1)], &[]).map(|()| String::new())
}

/// Installs a filter with a listener, which would be notified in place of the supervisor.
fn listen(_: &[OsString]) -> Result<String, Errno> {
    prctl::set_no_new_privs()?;
    let allow_everything = Instruction {
        code: (libc::BPF_RET | libc::BPF_K) as u16,
        jump_true: 0,
        jump_false: 0,
        operand: libc::SECCOMP_RET_ALLOW,
    };
    install_with_listener(&[allow_everything]).map(|_| String::new())
}

/// Makes the process undumpable, so that the supervisor could not read its memory.
fn hide(_: &[OsString]) -> Result<String, Errno> {
    prctl::set_dumpable(false)?;
    if prctl::get_dumpable()? {
        Err(NOTHING)
    } else {
        Ok(String::new())
    }
}

fn clone(flags: libc::c_int) -> Result<String, Errno> {
    match clone_process(flags)? {
        Side::Child => sys::process::exit_now(0),
        Side::Parent(child) => waitpid(child, None).map(|_| String::new()),
    }
}

/// Joins a network namespace. Without /proc, standard input serves: the filter refuses before the kernel checks it.
fn join(_: &[OsString]) -> Result<String, Errno> {
    let joined = match fs::File::open("/proc/self/ns/net") {
        Ok(namespace) => setns(namespace, CloneFlags::CLONE_NEWNET),
        Err(_) => setns(io::stdin(), CloneFlags::CLONE_NEWNET),
    };
    joined.map(|()| String::new())
}

fn held(sets: &[CapSet]) -> Result<String, Errno> {
    for set in sets {
        let held = caps::read(None, *set).map_err(|_| Errno::EIO)?;
        if !held.is_empty() {
            return Ok(format!("{set:?}"));
        }
    }
    Err(NOTHING)
}

/// Checks no_new_privs: with it, execve(2) grants no set-ID rights and no file capabilities (prctl(2)).
fn set_id(_: &[OsString]) -> Result<String, Errno> {
    if prctl::get_no_new_privs()? {
        Err(NOTHING)
    } else {
        Ok(String::new())
    }
}

/// Default limit of a descriptor number (fs.nr_open of proc_sys_fs(5)).
const MAX_DESCRIPTORS: i32 = 1 << 20;

/// Searches for inherited descriptors: by the list in /proc, or without /proc by all numbers.
fn descriptors(_: &[OsString]) -> Result<String, Errno> {
    let listed: Vec<i32> = match fs::read_dir("/proc/self/fd") {
        Ok(listed) => listed
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => (0..MAX_DESCRIPTORS).collect(),
        Err(error) => return Err(errno_of(error)),
    };
    let inherited: Vec<String> = listed
        .into_iter()
        .filter(|number| *number > 2 && survives_exec(*number))
        .map(|number| number.to_string())
        .collect();
    if inherited.is_empty() {
        Err(NOTHING)
    } else {
        Ok(inherited.join(" "))
    }
}

/// Raises the core limit as far as possible, and checks for a core of a child that crashes in the home.
fn crash(_: &[OsString]) -> Result<String, Errno> {
    let (_, hard) = getrlimit(Resource::RLIMIT_CORE)?;
    if setrlimit(Resource::RLIMIT_CORE, RLIM_INFINITY, RLIM_INFINITY).is_err() {
        setrlimit(Resource::RLIMIT_CORE, hard, hard)?;
    }
    let home = std::env::var_os("HOME").ok_or(Errno::EDESTADDRREQ)?;
    let status = Command::new(own_file())
        .args([HOSTILE_ARGUMENT, CRASH])
        .current_dir(home)
        .status()
        .map_err(errno_of)?;
    match (status.signal(), status.core_dumped()) {
        (Some(_), true) => Ok(String::new()),
        (Some(_), false) => Err(NOTHING),
        (None, _) => Err(Errno::EPROTO),
    }
}
