//! Ways out by other processes, by namespaces, and by what a process inherits.

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
use sys::process::{Side, clone_process};
use sys::seccomp::{Instruction, install_with_listener};

use super::class::{Aim, Attempt, Class, Layer, LedgerEntry, NOTHING, Refusal, Surroundings, by};
use super::{CRASH, HOSTILE_ARGUMENT, errno, own_file};

const FILTERED: &[Refusal] = &[by(Layer::Filter, Errno::EPERM)];
const UNSEEN: &[Refusal] = &[by(Layer::PidNamespace, Errno::ESRCH)];
/// A runner that is pid 1 of a container has the number that init has inside.
const UNSEEN_OR_INIT: &[Refusal] = &[
    by(Layer::PidNamespace, Errno::ESRCH),
    by(Layer::Landlock, Errno::EPERM),
];
const SCOPED: &[Refusal] = &[by(Layer::Landlock, Errno::EPERM)];
/// By their files in /proc; and where a container covers parts of /proc, the sandbox's own root has none.
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

/// A file of init's directory in /proc; its twin is of the victim's.
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
                .twin_in(Surroundings::OwnNamespaces)
                .blocked(FILTERED, LedgerEntry::None),
        ],
    },
    Class {
        id: "processes/capabilities",
        about: "capabilities that are left",
        attempts: &[
            Attempt::new("sets", |_| {
                held(&[
                    CapSet::Effective,
                    CapSet::Permitted,
                    CapSet::Inheritable,
                    CapSet::Ambient,
                ])
            })
            .twin_in(Surroundings::OwnNamespaces)
            .blocked(&[by(Layer::Capabilities, NOTHING)], LedgerEntry::None),
            // Where the user namespace is the container's, nobody may empty it.
            Attempt::new("bounding", |_| held(&[CapSet::Bounding]))
                .twin_in(Surroundings::OwnNamespaces)
                .blocked(&[by(Layer::Capabilities, NOTHING)], LedgerEntry::None)
                .inherited(&[], LedgerEntry::None),
        ],
    },
    Class {
        id: "processes/set-id",
        about: "programs that give their owner's rights",
        attempts: &[Attempt::new("rights", set_id)
            .blocked(&[by(Layer::NoNewPrivileges, NOTHING)], LedgerEntry::None)],
    },
    Class {
        id: "processes/descriptors",
        about: "descriptors of whoever started the runner",
        attempts: &[Attempt::new("inherited", descriptors)
            .blocked(&[by(Layer::Descriptors, NOTHING)], LedgerEntry::None)],
    },
    Class {
        id: "processes/cores",
        about: "a core of a crash, or the program that collects them",
        attempts: &[Attempt::new("crash", crash)
            .twin_in(Surroundings::CoreFiles)
            .blocked(&[by(Layer::Limits, NOTHING)], LedgerEntry::None)],
    },
];

fn process(aims: &[String]) -> Result<Pid, Errno> {
    let word = aims.first().ok_or(Errno::EDESTADDRREQ)?;
    let number = word.parse().map_err(|_| Errno::EDESTADDRREQ)?;
    let process = Pid::from_raw(number);
    // In another pid namespace the number may be this process's own by chance: then it aims at nobody.
    if process == Pid::this() {
        return Err(Errno::EDESTADDRREQ);
    }
    Ok(process)
}

/// PTRACE_SEIZE does not stop its target, and ends with this process.
fn trace(aims: &[String]) -> Result<String, Errno> {
    ptrace::seize(process(aims)?, ptrace::Options::empty()).map(|()| String::new())
}

/// Somewhere to read and write in another process of this program; elsewhere, if it lies at random places.
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
    let process = attempt::open_process(process(aims)?)?;
    attempt::copy_descriptor(process, 0).map(|_| String::new())
}

/// The second word below the directory that the first one names, opened to be read.
pub(super) fn open_below(aims: &[String]) -> Result<String, Errno> {
    let path: String = aims.iter().map(String::as_str).collect();
    fs::File::open(path).map(|_| String::new()).map_err(errno)
}

/// SIGURG is ignored by whoever has not asked for it.
fn signal(aims: &[String]) -> Result<String, Errno> {
    kill(process(aims)?, Signal::SIGURG).map(|()| String::new())
}

/// A listener of its own would be asked in place of the supervisor.
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

/// A process that is not dumpable cannot be read by its supervisor.
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

/// Where no /proc has it, any other file: a filter refuses before the kernel looks at it.
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

/// no_new_privs (prctl(2)): execve grants nothing that could not be done without it.
fn set_id(_: &[String]) -> Result<String, Errno> {
    if prctl::get_no_new_privs()? {
        Err(NOTHING)
    } else {
        Ok(String::new())
    }
}

/// More descriptors than this are in no table by default (fs.nr_open of proc_sys_fs(5)).
const MOST_DESCRIPTORS: i32 = 1 << 20;

/// By the list of them, and where there is no /proc by their numbers.
fn descriptors(_: &[String]) -> Result<String, Errno> {
    let listed: Vec<i32> = match fs::read_dir("/proc/self/fd") {
        Ok(listed) => listed
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => (0..MOST_DESCRIPTORS).collect(),
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

/// Raises the limit as far as it can, and looks whether a child that crashes in the home is dumped.
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
