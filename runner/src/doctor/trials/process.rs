//! Process probes: limits, a temporary directory, capabilities, pidfds.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::fd::{AsFd as _, AsRawFd as _};

use caps::CapSet;
use model::case::Tier;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::CloneFlags;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::pause;
use sandbox::cgroup::{self, Cgroup};
use sandbox::core_dumps::Receiver;
use sandbox::privilege;
use sys::process::open_pidfd;
use sys::process::{Side, clone_process};

use super::directory::Directory;
use super::namespaces;
use crate::doctor::trial::{Doctor, Doing as _, Observation, Outcome};
use crate::prepare::MIN_OPEN_FILES;

/// Processes and threads of a run without those of the client.
const PROCESS_COUNT: usize = 12;
/// Bytes of memory that the runner needs: two thread stacks and less than 1 MB. With RLIMIT_DATA and a release build,
/// case-b passed with 4.9 MB and failed with 4.8 MB. The program uses 0.2 MB of this before it starts.
const MEMORY_BYTES: usize = 4_700_000;
/// Bytes of a file as large as a report or the plan.
const FILE_BYTES: usize = 1024 * 1024;

/// Tests the number of open files by opening them.
pub(in crate::doctor) fn open_files(_: &Doctor) -> Outcome {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).doing("ask for the limit")?;
    if soft < MIN_OPEN_FILES {
        let raised = MIN_OPEN_FILES.min(hard);
        setrlimit(Resource::RLIMIT_NOFILE, raised, hard).doing("raise the soft limit")?;
    }
    let stdin = std::io::stdin();
    let mut held = Vec::new();
    // The kernel returns the lowest free descriptor, so all lower ones are open.
    let mut open = 0;
    while open < MIN_OPEN_FILES {
        let copy = stdin.as_fd().try_clone_to_owned();
        let copy = copy.doing(&format!("open more than {open} files, of {MIN_OPEN_FILES}"))?;
        open = u64::from(copy.as_raw_fd().unsigned_abs()) + 1;
        held.push(copy);
    }
    Ok(format!(
        "{MIN_OPEN_FILES} opened; the hard limit is {}",
        limit(hard)
    ))
}

/// Tests the number of processes by starting them.
pub(in crate::doctor) fn processes(_: &Doctor) -> Outcome {
    let mut started = Vec::new();
    let mut refused = None;
    for count in 1..=PROCESS_COUNT {
        match clone_process(0) {
            Ok(Side::Child) => loop {
                pause();
            },
            Ok(Side::Parent(child)) => started.push(child),
            Err(errno) => {
                refused = Some((count, errno));
                break;
            }
        }
    }
    for child in started {
        // The children wait in pause(2) and end by this signal only.
        let _ = kill(child, Signal::SIGKILL);
        let _ = waitpid(child, None);
    }
    match refused {
        Some((count, errno)) => {
            Err(errno).doing(&format!("start process {count} of {PROCESS_COUNT}"))
        }
        None => Ok(format!("{PROCESS_COUNT} started")),
    }
}

/// Tests the memory for the runner itself.
pub(in crate::doctor) fn memory(_: &Doctor) -> Outcome {
    let mut buffer: Vec<u8> = Vec::new();
    buffer
        .try_reserve_exact(MEMORY_BYTES)
        .map_err(|_| Errno::ENOMEM)
        .doing("reserve 4.7 MB")?;
    Ok("4.7 MB reserved".to_owned())
}

/// Tests the file size limit with a memfd, to which RLIMIT_FSIZE applies too.
pub(in crate::doctor) fn file_size(_: &Doctor) -> Outcome {
    let memory = memfd_create(c"trial", MFdFlags::MFD_CLOEXEC).doing("make a file in memory")?;
    let mut file = File::from(memory);
    // Write in small pieces: this probe must not need 1 MiB of memory.
    let piece = [0; 4096];
    for _ in 0..FILE_BYTES / piece.len() {
        file.write_all(&piece).doing("write a file of 1 MiB")?;
    }
    Ok("1 MiB written".to_owned())
}

/// Reports the limit of locked memory, which a run does not use.
pub(in crate::doctor) fn locked_memory(_: &Doctor) -> Outcome {
    let (soft, _) = getrlimit(Resource::RLIMIT_MEMLOCK).doing("ask for the limit")?;
    Err(Observation::NotNeeded(format!(
        "a run locks no memory; the limit is {}",
        limit(soft)
    )))
}

/// Tests that core dumps have no memory, and finds the receiver of core dumps on this machine.
pub(in crate::doctor) fn core_dumps(_: &Doctor) -> Outcome {
    let filter = fs::write("/proc/self/coredump_filter", "0");
    filter.doing("leave memory out of core dumps")?;
    match Receiver::read() {
        Some(Receiver::Socket) => Err(Observation::Wrong(
            "core_pattern names a socket: its daemon learns of each crash, without memory"
                .to_owned(),
        )),
        Some(Receiver::Program) => {
            Ok("core_pattern names a program, which is not started".to_owned())
        }
        Some(Receiver::File) => Ok("core_pattern names a file, which is not written".to_owned()),
        None => Ok("core_pattern cannot be read; dumps hold no memory".to_owned()),
    }
}

/// Tests inotify(7), which notices short-lived files.
pub(in crate::doctor) fn inotify(_: &Doctor) -> Outcome {
    let instance = Inotify::init(InitFlags::IN_CLOEXEC).doing("make an inotify instance")?;
    instance
        .add_watch("/", AddWatchFlags::IN_CREATE)
        .doing("watch a directory")?;
    Ok("an instance made, a directory watched".to_owned())
}

/// Tests a temporary directory by writing a file in it.
pub(in crate::doctor) fn temporary_directory(doctor: &Doctor) -> Outcome {
    let directory = Directory::make_where_a_run_does(doctor)?;
    let file = directory.path().join("file");
    File::create_new(&file)
        .and_then(|mut file| file.write_all(b"trial"))
        .doing(&format!("write {}", file.display()))?;
    let parent = directory.path().parent().unwrap_or(directory.path());
    Ok(format!("a file written below {}", parent.display()))
}

/// Tests no_new_privs, without which an ordinary user cannot install filters and rulesets.
pub(in crate::doctor) fn no_new_privileges(_: &Doctor) -> Outcome {
    privilege::set_no_new_privileges()?;
    match nix::sys::prctl::get_no_new_privs() {
        Ok(true) => Ok("set, and read back".to_owned()),
        Ok(false) => Err(Observation::Wrong(
            "set, and read back as not set".to_owned(),
        )),
        Err(errno) => Err(errno).doing("read no_new_privs back"),
    }
}

/// Tests emptying all five capability sets of a process in a user namespace.
pub(in crate::doctor) fn capabilities(doctor: &Doctor) -> Outcome {
    namespaces::enter(doctor, CloneFlags::empty())?;
    privilege::drop_all(Tier::Namespace)?;
    for (name, set) in [
        ("bounding", CapSet::Bounding),
        ("ambient", CapSet::Ambient),
        ("effective", CapSet::Effective),
        ("inheritable", CapSet::Inheritable),
        ("permitted", CapSet::Permitted),
    ] {
        let left = caps::read(None, set)
            .map_err(|_| Errno::EPERM)
            .doing(&format!("read the {name} set back"))?;
        if !left.is_empty() {
            return Err(Observation::Wrong(format!(
                "{} capabilities are left in the {name} set",
                left.len()
            )));
        }
    }
    Ok("five sets emptied, and read back".to_owned())
}

/// Tests a pidfd, which signals the end of its process.
pub(in crate::doctor) fn pidfd(_: &Doctor) -> Outcome {
    match clone_process(0).doing("start a process")? {
        Side::Child => loop {
            pause();
        },
        Side::Parent(child) => {
            let opened = open_pidfd(child.as_raw(), 0);
            let _ = kill(child, Signal::SIGKILL);
            let seen = opened
                .doing("open a descriptor of a process")
                .and_then(|pidfd| {
                    let mut polled = [PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)];
                    poll(&mut polled, PollTimeout::from(5000_u16)).doing("wait for its end")
                });
            let _ = waitpid(child, None);
            match seen? {
                0 => Err(Observation::Wrong("it does not signal the end".to_owned())),
                _ => Ok("opened, and signalled the end".to_owned()),
            }
        }
    }
}

/// Tests a cgroup of version 2 with limits, made and removed as for a run.
pub(in crate::doctor) fn cgroup(_: &Doctor) -> Outcome {
    let limits = cgroup::Limits {
        memory_bytes: 1 << 30,
        processes: 64,
    };
    match Cgroup::make(limits) {
        Ok(group) => Ok(format!("made, with {}", group.describe())),
        Err(reason) => Err(Observation::NotNeeded(format!(
            "a run uses resource limits alone: {reason}"
        ))),
    }
}

fn limit(value: u64) -> String {
    if value == u64::MAX {
        "none".to_owned()
    } else {
        value.to_string()
    }
}
