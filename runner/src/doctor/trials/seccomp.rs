//! Seccomp probes: a filter, its listener, and the work of a supervisor: receive, answer, read memory of the caller.

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

/// Errno that no other layer returns for chdir(2).
const FILTER_ERRNO: Errno = Errno::EXDEV;

const REFUSING: Filter = one_rule(&[Rule {
    call: SystemCall::SYS_chdir,
    when: &[],
    action: Action::Refuse(FILTER_ERRNO),
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

/// Path of the notified call. The directory does not exist.
const PATH: &str = "/runner-doctor/no such directory";

/// Tests that a filter refuses one call and no other.
pub(in crate::doctor) fn filter(_: &Doctor) -> Outcome {
    must_work("chdir", chdir("/"))?;
    privilege::set_no_new_privileges()?;
    REFUSING.install().doing("install a filter")?;
    must_refuse("chdir", FILTER_ERRNO, chdir("/"))?;
    must_work("getcwd", nix::unistd::getcwd())?;
    Ok("one call refused by it, another one allowed".to_owned())
}

/// Tests a filter with a listener. A chain of filters can have only one listener.
pub(in crate::doctor) fn listener(_: &Doctor) -> Outcome {
    privilege::set_no_new_privileges()?;
    let listener = NOTIFYING
        .install_with_listener()
        .doing("install a filter with a listener")?;
    // The descriptor table is not shared, so the listener is closed with this process.
    drop(sys::fds::adopt(listener));
    if !notify::sizes_match().doing("ask for the sizes of notifications")? {
        return Err(Observation::Wrong(
            "notifications have another layout than ours".to_owned(),
        ));
    }
    Ok("installed".to_owned())
}

/// Tests that calls are received and answered: one is refused, the next one continues.
pub(in crate::doctor) fn notification(_: &Doctor) -> Outcome {
    supervise(UserNamespace::Same, |_, _| Ok(()))?;
    Ok("two calls received, one refused, one continued".to_owned())
}

/// Tests reading the memory of a child process in the same user namespace.
pub(in crate::doctor) fn memory_here(_: &Doctor) -> Outcome {
    supervise(UserNamespace::Same, read_path)?;
    Ok("read while its call waits".to_owned())
}

/// Tests reading the memory of a process in a new user namespace without capabilities, like the client.
pub(in crate::doctor) fn memory_inside(_: &Doctor) -> Outcome {
    supervise(UserNamespace::New, read_path)?;
    Ok("read while its call waits".to_owned())
}

/// Tests reading memory by process_vm_readv(2), the alternative to /proc/PID/mem.
pub(in crate::doctor) fn direct_memory(_: &Doctor) -> Outcome {
    supervise(UserNamespace::Same, |called, _| {
        let mut bytes = [0; PATH.len()];
        notify::read_directly(called.thread, called.arguments[0], &mut bytes)
            .doing("read memory by process_vm_readv")?;
        is_path(&bytes)
    })?;
    Ok("read while its call waits".to_owned())
}

/// Tests copying a socket of the caller by pidfd_getfd(2).
pub(in crate::doctor) fn descriptor(_: &Doctor) -> Outcome {
    supervise(UserNamespace::Same, |called, process| {
        // Descriptor 0 is the socket of the trial, which each process of it has.
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

/// User namespace of the supervised process.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UserNamespace {
    Same,
    New,
}

/// Message from the supervised process.
#[derive(Debug, Serialize, Deserialize)]
enum Message {
    /// The parent must write the id maps.
    Unmapped,
    /// The listener is installed, and its descriptor is attached.
    Listening,
    /// Errnos of the two calls.
    Called(i32, i32),
    Failed(Observation),
}

/// Supervises a process that makes two calls. The first call is inspected and refused, the second one continues.
fn supervise(
    namespace: UserNamespace,
    inspect: impl FnOnce(&Notification, Pid) -> Result<(), Observation>,
) -> Result<(), Observation> {
    let (socket, peer) = message_pair().doing("make a pair of sockets")?;
    match clone_process(0).doing("start a process")? {
        Side::Child => {
            drop(socket);
            let message = run_supervised(namespace, &peer).unwrap_or_else(Message::Failed);
            let sent = message::send(&peer, &message, &[]);
            std::process::exit(i32::from(sent.is_err()))
        }
        Side::Parent(process) => {
            drop(peer);
            answer_twice(&socket, process, inspect)
        }
    }
}

fn run_supervised(namespace: UserNamespace, socket: &OwnedFd) -> Result<Message, Observation> {
    if namespace == UserNamespace::New {
        become_the_client(socket)?;
    }
    privilege::set_no_new_privileges()?;
    let number = NOTIFYING
        .install_with_listener()
        .doing("install a filter with a listener")?;
    let listener = sys::fds::adopt(number);
    message::send(socket, &Message::Listening, &[listener.as_raw_fd()]).doing("hand it over")?;
    drop(listener);
    let errno = || chdir(PATH).err().map_or(0, |errno| errno as i32);
    Ok(Message::Called(errno(), errno()))
}

fn become_the_client(socket: &OwnedFd) -> Result<(), Observation> {
    let identity = identity::for_caller(Tier::Namespace);
    identity::drop_groups(identity)?;
    unshare(CloneFlags::CLONE_NEWUSER).doing("make a user namespace")?;
    match identity {
        Identity::Own { uid, gid } | Identity::Unmapped { uid, gid } => {
            identity::map_own(uid, gid)?
        }
        Identity::Mapped { .. } => {
            message::send(socket, &Message::Unmapped, &[]).doing("ask for the maps")?;
            let _: Option<((), _)> = message::receive(socket).doing("wait for the maps")?;
        }
    }
    identity::become_inside_group(identity)?;
    identity::become_inside_user(identity)?;
    // The change of the user cleared the dumpable flag, which the supervisor needs to read memory (prctl(2)).
    nix::sys::prctl::set_dumpable(true).doing("open this process to its supervisor")?;
    privilege::drop_all(Tier::Namespace)?;
    Ok(())
}

fn answer_twice(
    socket: &OwnedFd,
    process: Pid,
    inspect: impl FnOnce(&Notification, Pid) -> Result<(), Observation>,
) -> Result<(), Observation> {
    let listener = loop {
        match receive_message(socket)? {
            (Message::Unmapped, _) => {
                let Identity::Mapped { host_id } = identity::for_caller(Tier::Namespace) else {
                    return Err(Observation::Wrong("maps were asked for".to_owned()));
                };
                identity::map_other(process, host_id)?;
                message::send(socket, &(), &[]).doing("answer")?;
            }
            (Message::Listening, descriptors) => {
                let one = descriptors.into_iter().next();
                break one.ok_or(Errno::EBADMSG).doing("receive the listener")?;
            }
            (Message::Failed(observation), _) => return Err(observation),
            (Message::Called(..), _) => {
                return Err(Observation::Wrong("a call was not notified".to_owned()));
            }
        }
    };
    let first = receive(&listener)?;
    let seen = inspect(&first, process);
    notify::answer(&listener, first.id, Answer::Refuse(FILTER_ERRNO)).doing("refuse the call")?;
    let second = receive(&listener)?;
    notify::answer(&listener, second.id, Answer::Continue).doing("let the call through")?;
    seen?;
    match receive_message(socket)? {
        (Message::Called(first, second), _) => {
            must_refuse("the first call", FILTER_ERRNO, errno(first))?;
            must_refuse("the second call", Errno::ENOENT, errno(second))
        }
        (Message::Failed(observation), _) => Err(observation),
        (Message::Unmapped | Message::Listening, _) => {
            Err(Observation::Wrong("unexpected message".to_owned()))
        }
    }
}

fn receive_message(socket: &OwnedFd) -> Result<(Message, Vec<OwnedFd>), Observation> {
    message::receive(socket)
        .doing("receive a message of the supervised process")?
        .ok_or_else(|| {
            Observation::Wrong("the supervised process ended without a message".to_owned())
        })
}

/// SECCOMP_IOCTL_NOTIF_RECV blocks even with O_NONBLOCK, so poll first.
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
