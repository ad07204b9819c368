//! The filter, its listener, and what a supervisor does with it: receive, answer, read what a call points to.

use std::borrow::Cow;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};

use model::case::Tier;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Pid, chdir};
use sandbox::filter::{Action, Filter, Rule, SystemCall};
use sandbox::plan::Identity;
use sandbox::{identity, message, privilege};
use serde::{Deserialize, Serialize};
use sys::notify::{self, Answer, Notification};
use sys::process::{Side, clone_process};

use super::{must_refuse, must_work};
use crate::doctor::trial::{Doctor, Doing as _, Observation, Outcome, message_pair};

/// No other layer answers a chdir with it.
const OURS: Errno = Errno::EXDEV;

const REFUSING: Filter = one_rule(&[Rule {
    call: SystemCall::SYS_chdir,
    when: &[],
    action: Action::Refuse(OURS),
}]);

const NOTIFYING: Filter = one_rule(&[Rule {
    call: SystemCall::SYS_chdir,
    when: &[],
    action: Action::Notify,
}]);

const fn one_rule(rules: &'static [Rule]) -> Filter {
    Filter {
        rules: Cow::Borrowed(rules),
        otherwise: Action::Allow,
    }
}

/// What the notified call points to. No such directory exists.
const PATH: &str = "/runner-doctor/no such directory";

/// A filter refuses one call, and no other.
pub(in crate::doctor) fn filter(_: &Doctor) -> Outcome {
    must_work("chdir", chdir("/"))?;
    privilege::set_no_new_privileges()?;
    REFUSING.install().doing("install a filter")?;
    must_refuse("chdir", OURS, chdir("/"))?;
    must_work("getcwd", nix::unistd::getcwd())?;
    Ok("one call refused by it, another one let through".to_owned())
}

/// A filter with a listener, of which a chain of filters may have one.
pub(in crate::doctor) fn listener(_: &Doctor) -> Outcome {
    privilege::set_no_new_privileges()?;
    let listener = NOTIFYING
        .install_with_listener()
        .doing("install a filter with a listener")?;
    // The table is ours alone; it goes with the process.
    drop(sys::fds::adopt(listener));
    if !notify::sizes_match().doing("ask for the sizes of notifications")? {
        return Err(Observation::Wrong(
            "notifications have another layout than ours".to_owned(),
        ));
    }
    Ok("installed".to_owned())
}

/// Calls are received and answered: one refused, one let through to the kernel.
pub(in crate::doctor) fn notification(_: &Doctor) -> Outcome {
    supervise(Where::Here, |_, _| Ok(()))?;
    Ok("two calls received, one refused, one let through".to_owned())
}

/// The memory of a process below us, in our own user namespace.
pub(in crate::doctor) fn memory_here(_: &Doctor) -> Outcome {
    supervise(Where::Here, read_path)?;
    Ok("read while its call waits".to_owned())
}

/// The memory of a process in a user namespace, without capabilities, as the client is.
pub(in crate::doctor) fn memory_inside(_: &Doctor) -> Outcome {
    supervise(Where::Inside, read_path)?;
    Ok("read while its call waits".to_owned())
}

/// The second way to the same.
pub(in crate::doctor) fn direct_memory(_: &Doctor) -> Outcome {
    supervise(Where::Here, |called, _| {
        let mut bytes = [0; PATH.len()];
        notify::read_directly(called.thread, called.arguments[0], &mut bytes)
            .doing("read memory by process_vm_readv")?;
        is_path(&bytes)
    })?;
    Ok("read while its call waits".to_owned())
}

/// A copy of a socket of the caller.
pub(in crate::doctor) fn descriptor(_: &Doctor) -> Outcome {
    supervise(Where::Here, |called, process| {
        // Every process has that one: it came with the trial.
        notify::copy_descriptor(called.thread, process, 0)
            .map(drop)
            .doing("copy a descriptor by pidfd_getfd")
    })?;
    Ok("copied while its call waits".to_owned())
}

fn read_path(called: &Notification, _: Pid) -> Result<(), Observation> {
    let memory = notify::open_memory(called.thread).doing("open /proc/PID/mem")?;
    let mut bytes = [0; PATH.len()];
    notify::read_memory(&memory, called.arguments[0], &mut bytes).doing("read /proc/PID/mem")?;
    is_path(&bytes)
}

fn is_path(bytes: &[u8]) -> Result<(), Observation> {
    if bytes == PATH.as_bytes() {
        return Ok(());
    }
    Err(Observation::Wrong(
        "what was read is not what the call points to".to_owned(),
    ))
}

/// Where the supervised process lives.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Where {
    Here,
    Inside,
}

/// From the supervised process.
#[derive(Debug, Serialize, Deserialize)]
enum Word {
    /// Its maps are to be written.
    Unmapped,
    /// The listener comes along.
    Listening,
    /// The errnos of its two calls.
    Called(i32, i32),
    Failed(Observation),
}

/// A process that calls twice: the first call is looked at and refused, the second one let through.
fn supervise(
    place: Where,
    look: impl FnOnce(&Notification, Pid) -> Result<(), Observation>,
) -> Result<(), Observation> {
    let (socket, theirs) = message_pair().doing("make a pair of sockets")?;
    match clone_process(0).doing("start a process")? {
        Side::Child => {
            drop(socket);
            let word = supervised(place, &theirs).unwrap_or_else(Word::Failed);
            let told = message::send(&theirs, &word, &[]);
            std::process::exit(i32::from(told.is_err()))
        }
        Side::Parent(process) => {
            drop(theirs);
            answer_twice(&socket, process, look)
        }
    }
}

fn supervised(place: Where, socket: &OwnedFd) -> Result<Word, Observation> {
    if place == Where::Inside {
        become_the_client(socket)?;
    }
    privilege::set_no_new_privileges()?;
    let number = NOTIFYING
        .install_with_listener()
        .doing("install a filter with a listener")?;
    let listener = sys::fds::adopt(number);
    message::send(socket, &Word::Listening, &[listener.as_raw_fd()]).doing("hand it over")?;
    drop(listener);
    let errno = || chdir(PATH).err().map_or(0, |errno| errno as i32);
    Ok(Word::Called(errno(), errno()))
}

fn become_the_client(socket: &OwnedFd) -> Result<(), Observation> {
    let who = identity::for_caller(Tier::Namespace);
    identity::drop_groups(who)?;
    unshare(CloneFlags::CLONE_NEWUSER).doing("make a user namespace")?;
    match who {
        Identity::Own { uid, gid } | Identity::Unmapped { uid, gid } => {
            identity::map_own(uid, gid)?
        }
        Identity::Mapped { .. } => {
            message::send(socket, &Word::Unmapped, &[]).doing("ask for the maps")?;
            let _: Option<((), _)> = message::receive(socket).doing("wait for the maps")?;
        }
    }
    identity::become_inside_group(who)?;
    identity::become_inside_user(who)?;
    // A changed user closed it to others of its user, and to us.
    nix::sys::prctl::set_dumpable(true).doing("open this process to its supervisor")?;
    privilege::drop_all(Tier::Namespace)?;
    Ok(())
}

fn answer_twice(
    socket: &OwnedFd,
    process: Pid,
    look: impl FnOnce(&Notification, Pid) -> Result<(), Observation>,
) -> Result<(), Observation> {
    let listener = loop {
        match hear(socket)? {
            (Word::Unmapped, _) => {
                let Identity::Mapped { host_id } = identity::for_caller(Tier::Namespace) else {
                    return Err(Observation::Wrong("maps were asked for".to_owned()));
                };
                identity::map_other(process, host_id)?;
                message::send(socket, &(), &[]).doing("answer")?;
            }
            (Word::Listening, descriptors) => {
                let one = descriptors.into_iter().next();
                break one.ok_or(Errno::EBADMSG).doing("receive the listener")?;
            }
            (Word::Failed(observation), _) => return Err(observation),
            (Word::Called(..), _) => {
                return Err(Observation::Wrong("a call was not notified".to_owned()));
            }
        }
    };
    let first = receive(&listener)?;
    let seen = look(&first, process);
    notify::answer(&listener, first.id, Answer::Refuse(OURS)).doing("refuse the call")?;
    let second = receive(&listener)?;
    notify::answer(&listener, second.id, Answer::Continue).doing("let the call through")?;
    seen?;
    match hear(socket)? {
        (Word::Called(first, second), _) => {
            must_refuse("the first call", OURS, errno(first))?;
            must_refuse("the second call", Errno::ENOENT, errno(second))
        }
        (Word::Failed(observation), _) => Err(observation),
        (Word::Unmapped | Word::Listening, _) => {
            Err(Observation::Wrong("another word was due".to_owned()))
        }
    }
}

fn hear(socket: &OwnedFd) -> Result<(Word, Vec<OwnedFd>), Observation> {
    message::receive(socket)
        .doing("hear from the supervised process")?
        .ok_or_else(|| Observation::Wrong("the supervised process ended without a word".to_owned()))
}

/// Receiving waits whatever the flags say, so it is waited for before.
fn receive(listener: &OwnedFd) -> Result<Notification, Observation> {
    let mut polled = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
    poll(&mut polled, PollTimeout::NONE).doing("wait for a notification")?;
    notify::receive(listener).doing("receive a notification")
}

fn errno(number: i32) -> Result<(), Errno> {
    match number {
        0 => Ok(()),
        number => Err(Errno::from_raw(number)),
    }
}
