//! Attempts by other processes, by namespaces, and by inherited resources.

use std::fs;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use caps::CapSet;
use nix::errno::Errno;
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::sys::uio::{RemoteIoVec, process_vm_readv, process_vm_writev};
use nix::sys::wait::waitpid;
use nix::sys::{prctl, ptrace};
use nix::unistd::Pid;
use sys::attempt;
use sys::fds::survives_exec;
use sys::process::{Side, clone_process, get_descriptor, open_pidfd};
use sys::seccomp::{Instruction, install_with_listener};

use super::class::{Aim, Attempt, Class, Layer, LedgerEntry, NOTHING, Refusal, TwinEnv, by};
use super::{CRASH, HOSTILE_ARGUMENT, errno, own_file};

const FILTERED: &[Refusal] = &[by(Layer::Filter, Errno::EPERM)];
const UNSEEN: &[Refusal] = &[by(Layer::PidNamespace, Errno::ESRCH)];
/// Refusals like [`UNSEEN`]. If the runner is pid 1 of a container, its pid is that of init inside.
const UNSEEN_OR_INIT: &[Refusal] = &[
    by(Layer::PidNamespace, Errno::ESRCH),
    by(Layer::Landlock, Errno::EPERM),
];
const SCOPED: &[Refusal] = &[by(Layer::Landlock, Errno::EPERM)];
/// Refusals of files in /proc. If a container covers parts of /proc, the new root has no /proc.
pub(super) const HIDDEN: &[Refusal] = &[
    by(Layer::Landlock, Errno::EACCES),
    by(Layer::OwnRoot, Errno::ENOENT),
];
const HIDDEN_THERE: &[Refusal] = &[by(Layer::Landlock, Errno::EACCES)];

const fn on_victim(name: &'static str, make: super::class::Make) -> Attempt {
    Attempt::new(name, make)
        .at(&[Aim::Victim])
        .blocked(FILTERED, LedgerEntry::None)
}

/// Attempt at a file of init in /proc, with a twin at a file of the victim.
const fn of_init(name: &'static str, aims: &'static [Aim], twin: &'static [Aim]) -> Attempt {
    Attempt::new(name, open_below)
        .at(aims)
        .twin_at(twin)
        .blocked(HIDDEN, LedgerEntry::None)
        .inherited(HIDDEN_THERE, LedgerEntry::None)
}

pub(super) const CLASSES: &[Class] = &[
    Class {
        id: "processes/memory",
        about: "memory and descriptors of other processes",
        attempts: &[
            on_victim("trace", trace),
            on_victim("read", read_memory).twin_arrives(&[Errno::EFAULT]),
            on_victim("write", write_memory).twin_arrives(&[Errno::EFAULT]),
            Attempt::new("descriptor", take_descriptor)
                .at(&[Aim::Victim])
                .blocked(UNSEEN, LedgerEntry::None)
                .inherited(FILTERED, LedgerEntry::None),
            of_init(
                "file",
                &[Aim::Word("/proc/1/"), Aim::Word("mem")],
                &[Aim::VictimDirectory, Aim::Word("mem")],
            ),
        ],
    },
    Class {
        id: "processes/signals",
        about: "signals to other processes",
        attempts: &[
            Attempt::new("signal", signal)
                .at(&[Aim::Victim])
                .blocked(UNSEEN, LedgerEntry::None)
                .inherited(SCOPED, LedgerEntry::None),
            Attempt::new("init", signal)
                .at(&[Aim::Word("1")])
                .twin_at(&[Aim::Victim])
                .blocked(SCOPED, LedgerEntry::None),
        ],
    },
    Class {
        id: "processes/supervisor",
        about: "the supervisor: stopped, replaced, blinded",
        attempts: &[
            Attempt::new("signal", signal)
                .at(&[Aim::Supervisor])
                .blocked(UNSEEN_OR_INIT, LedgerEntry::None)
                .inherited(SCOPED, LedgerEntry::None),
            Attempt::new("listener", listen)
                .blocked(&[by(Layer::Filter, Errno::EBUSY)], LedgerEntry::None),
            Attempt::new("unreadable", hide).blocked(
                &[by(Layer::Supervisor, NOTHING)],
                LedgerEntry::Call("prctl"),
            ),
        ],
    },
    Class {
        id: "processes/namespaces",
        about: "namespaces made and joined, where capabilities come back",
        attempts: &[
            Attempt::new("unshare", |_| {
                unshare(CloneFlags::CLONE_NEWUSER).map(|()| String::new())
            })
            .blocked(FILTERED, LedgerEntry::None),
            Attempt::new("clone", clone).blocked(FILTERED, LedgerEntry::None),
            Attempt::new("clone3", |_| {
                attempt::clone3_in_user_namespace().map(|()| String::new())
            })
            .blocked(&[by(Layer::Filter, Errno::ENOSYS)], LedgerEntry::None),
            Attempt::new("join", join)
                .twin_in(TwinEnv::OwnNamespaces)
                .blocked(FILTERED, LedgerEntry::None),
        ],
    },
    Class {
        id: "processes/capabilities",
        about: "remaining capabilities",
        attempts: &[
            Attempt::new("sets", |_| {
                held(&[
                    CapSet::Effective,
                    CapSet::Permitted,
                    CapSet::Inheritable,
                    CapSet::Ambient,
                ])
            })
            .twin_in(TwinEnv::OwnNamespaces)
            .blocked(&[by(Layer::Capabilities, NOTHING)], LedgerEntry::None),
            // Emptying the bounding set needs CAP_SETPCAP in the container's user namespace (capabilities(7)).
            Attempt::new("bounding", |_| held(&[CapSet::Bounding]))
                .twin_in(TwinEnv::OwnNamespaces)
                .blocked(&[by(Layer::Capabilities, NOTHING)], LedgerEntry::None)
                .inherited(&[], LedgerEntry::None),
        ],
    },
    Class {
        id: "processes/set-id",
        about: "set-user-ID and set-group-ID programs",
        attempts: &[Attempt::new("rights", set_id)
            .blocked(&[by(Layer::NoNewPrivileges, NOTHING)], LedgerEntry::None)],
    },
    Class {
        id: "processes/descriptors",
        about: "descriptors inherited from the runner's caller",
        attempts: &[Attempt::new("inherited", descriptors)
            .blocked(&[by(Layer::Descriptors, NOTHING)], LedgerEntry::None)],
    },
    Class {
        id: "processes/cores",
        about: "core dumps, and programs that collect them",
        attempts: &[Attempt::new("crash", crash)
            .twin_in(TwinEnv::CoreFiles)
            .blocked(&[by(Layer::Limits, NOTHING)], LedgerEntry::None)],
    },
];

fn process(aims: &[String]) -> Result<Pid, Errno> {
    let word = aims.first().ok_or(Errno::EDESTADDRREQ)?;
    let number = word.parse().map_err(|_| Errno::EDESTADDRREQ)?;
    let process = Pid::from_raw(number);
    // In another pid namespace the number may be this process's own pid by chance.
    if process == Pid::this() {
        return Err(Errno::EDESTADDRREQ);
    }
    Ok(process)
}

/// Traces a process. PTRACE_SEIZE does not stop its target, and ends with the tracer.
fn trace(aims: &[String]) -> Result<String, Errno> {
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

fn read_memory(aims: &[String]) -> Result<String, Errno> {
    let mut word = [0; 8];
    let mut local = [IoSliceMut::new(&mut word)];
    process_vm_readv(process(aims)?, &mut local, &place()).map(|_| String::new())
}

fn write_memory(aims: &[String]) -> Result<String, Errno> {
    let word = PLACE.load(Ordering::Relaxed).to_ne_bytes();
    let local = [IoSlice::new(&word)];
    process_vm_writev(process(aims)?, &local, &place()).map(|_| String::new())
}

fn take_descriptor(aims: &[String]) -> Result<String, Errno> {
    let pidfd = open_pidfd(process(aims)?.as_raw(), 0)?;
    get_descriptor(pidfd, 0).map(|_| String::new())
}

/// Opens a file for reading. Its path is the joined targets.
pub(super) fn open_below(aims: &[String]) -> Result<String, Errno> {
    let path: String = aims.iter().map(String::as_str).collect();
    fs::File::open(path).map(|_| String::new()).map_err(errno)
}

/// Sends SIGURG, which is ignored by default (signal(7)).
fn signal(aims: &[String]) -> Result<String, Errno> {
    kill(process(aims)?, Signal::SIGURG).map(|()| String::new())
}

/// Installs a filter with a listener, which would be notified in place of the supervisor.
fn listen(_: &[String]) -> Result<String, Errno> {
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
fn hide(_: &[String]) -> Result<String, Errno> {
    prctl::set_dumpable(false)?;
    if prctl::get_dumpable()? {
        Err(NOTHING)
    } else {
        Ok(String::new())
    }
}

fn clone(_: &[String]) -> Result<String, Errno> {
    match clone_process(libc::CLONE_NEWUSER)? {
        Side::Child => std::process::exit(0),
        Side::Parent(child) => waitpid(child, None).map(|_| String::new()),
    }
}

/// Joins a network namespace. Without /proc, any other file serves: the filter refuses before the kernel checks it.
fn join(_: &[String]) -> Result<String, Errno> {
    let namespace = fs::File::open("/proc/self/ns/net").or_else(|_| fs::File::open("/"));
    let namespace = namespace.map_err(errno)?;
    setns(namespace, CloneFlags::CLONE_NEWNET).map(|()| String::new())
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
fn set_id(_: &[String]) -> Result<String, Errno> {
    if prctl::get_no_new_privs()? {
        Err(NOTHING)
    } else {
        Ok(String::new())
    }
}

/// Default limit of a descriptor number (fs.nr_open of proc_sys_fs(5)).
const MAX_DESCRIPTORS: i32 = 1 << 20;

/// Searches for inherited descriptors: by the list in /proc, or without /proc by all numbers.
fn descriptors(_: &[String]) -> Result<String, Errno> {
    let listed: Vec<i32> = match fs::read_dir("/proc/self/fd") {
        Ok(listed) => listed
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => (0..MAX_DESCRIPTORS).collect(),
        Err(error) => return Err(errno(error)),
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
fn crash(_: &[String]) -> Result<String, Errno> {
    let (_, hard) = getrlimit(Resource::RLIMIT_CORE)?;
    if setrlimit(Resource::RLIMIT_CORE, RLIM_INFINITY, RLIM_INFINITY).is_err() {
        setrlimit(Resource::RLIMIT_CORE, hard, hard)?;
    }
    let home = std::env::var_os("HOME").ok_or(Errno::EDESTADDRREQ)?;
    let status = Command::new(own_file())
        .args([HOSTILE_ARGUMENT, CRASH])
        .current_dir(home)
        .status()
        .map_err(errno)?;
    match (status.signal(), status.core_dumped()) {
        (Some(_), true) => Ok(String::new()),
        (Some(_), false) => Err(NOTHING),
        (None, _) => Err(Errno::EPROTO),
    }
}
