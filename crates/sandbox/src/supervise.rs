//! The supervisor: one thread that answers the system calls that the client's seccomp filter notifies, and records
//! them.
//!
//! For each call the thread waits with poll(2), receives the call, reads its arguments, checks that the caller still
//! waits, decides, records and answers. Entries of the ledger are recorded before the answer, so that none is lost. A
//! path lookup needs no decision: the thread lets it continue first. The thread ends with the last filtered process.
//!
//! Before each connection to the stub, the thread takes the number of lines on the client's standard output
//! ([`lines`](crate::lines)).

mod behalf;
mod call;
mod caller;
mod chmod_proxy;
mod connector;
mod decide;
mod kernel_memory;
pub mod ledger;
mod lookup;
mod process_limit;
mod record;
mod socket_state;
mod sockets;
mod system_v;

use std::collections::HashSet;
use std::fs;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use model::evidence::{Attempt, RESOLVER};
use model::secret::SecretScanner;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::Pid;
use sys::clock::Clock;
use sys::notify::{self, Answer, Notification};
use sys::processors::{Processors, SELF};

use self::behalf::Sockets;
use self::call::{Address, Call};
use self::caller::{Caller, Callers};
use self::decide::{Context, decide};
use self::ledger::Ledger;
use self::process_limit::ProcessLimit;
use super::error::{At as _, SetupError, Step};
use super::filter::SystemCall;
use super::lines::LineCount;
use super::plan::{Plan, RootPlan};
use super::weaken::Protection;

pub(super) use self::kernel_memory::KernelMemory;

/// Time limit for the ledger's hand-over after the last filtered process has ended.
const HAND_OVER: Duration = Duration::from_secs(2);

/// Addresses of the stub's listeners. The stub must accept as many connections as the supervisor let through.
#[derive(Clone, Copy, Debug)]
pub struct StubAddresses {
    /// Listener of the base URL, which the client was given.
    pub stub: SocketAddr,
    /// Listener of the second host, if the case has one. Only a response can name this address, so a connection
    /// there is an attempt.
    pub elsewhere: Option<SocketAddr>,
}

/// Handle of the running supervisor.
#[derive(Debug)]
pub struct Supervisor {
    shared: Arc<Shared>,
    ledger: Receiver<Ledger>,
}

#[derive(Debug, Default)]
struct Shared {
    /// The client's program runs. Before that, every call is a probe of the canary.
    launched: AtomicBool,
    /// The client has ended: no process may be created any more.
    ending: AtomicBool,
    /// Calls recorded before the launch.
    canaries: Mutex<Vec<Attempt>>,
    /// First request that the host refused to the supervisor.
    failure: Mutex<Option<SetupError>>,
}

impl Supervisor {
    /// Starts the thread. At each connection to the stub, it takes the number of output lines from `lines`. `memory` was
    /// counted before the client made any socket. Until the launch, the thread shares the first of the `processors` with the
    /// canary: an exchange is then a switch of threads, not the wake-up of another, idle processor.
    ///
    /// # Errors
    /// A refused request, the errno of the failed thread creation, or `EINVAL` if the kernel's struct seccomp_notif
    /// differs from ours.
    pub(super) fn start(
        listener: OwnedFd,
        addresses: StubAddresses,
        clock: Clock,
        (lines, memory): (LineCount, KernelMemory),
        (plan, stage, processors): (&Plan, Pid, Option<Processors>),
        secrets: &SecretScanner,
    ) -> Result<Self, SetupError> {
        let step = Step::Supervise;
        if !notify::sizes_match().at(step)? {
            return Err(Errno::EINVAL).at(step);
        }
        let refuses = plan.keeps(Protection::Refusals);
        let on_behalf = plan.is_inherited() && refuses;
        let mut tried = notify::try_requests(&listener);
        if on_behalf {
            tried = tried.and_then(|()| notify::try_descriptors(&listener));
        }
        if let Err((request, errno)) = tried {
            return Err(errno).at_object(step, request);
        }
        let sockets = on_behalf.then(|| Sockets::start(addresses)).transpose();
        let sockets = sockets.at(step)?;
        let shared = Arc::new(Shared::default());
        let (hand_over, ledger) = sync_channel(1);
        let supervision = Supervision {
            listener,
            addresses,
            stub_is_known: plan.server.is_known,
            clock,
            lines,
            shared: Arc::clone(&shared),
            ledger: Ledger::default(),
            callers: Callers::default(),
            processors,
            refuses,
            has_opened_memory: false,
            sockets,
            records: plan.keeps(Protection::Records),
            lookups: plan.lookups,
            unix_sockets: !plan.is_inherited() && !plan.shows_host_directories(),
            shared_network: plan.is_inherited(),
            process_limit: ProcessLimit::new(plan.process_limit, stage),
            memory,
            own_trees: plan.root.trees().map(|(_, path)| PathBuf::from(path)),
            executable: plan.is_inherited().then(|| executable(&plan.root)),
            secrets: secrets.clone(),
        };
        thread::Builder::new()
            .name("supervisor".to_owned())
            .spawn(move || {
                // A missing receiver means that the run is over.
                let _ = hand_over.send(supervision.run());
            })
            .at(step)?;
        Ok(Self { shared, ledger })
    }

    /// Marks the launch of the client: later calls are the client's.
    pub fn launch(&self) {
        self.shared.launched.store(true, Ordering::SeqCst);
    }

    /// Refuses new processes, so that the final kill cannot race with fork(2).
    pub fn refuse_new_processes(&self) {
        self.shared.ending.store(true, Ordering::SeqCst);
    }

    /// Recorded calls of the canary.
    pub fn canaries(&self) -> Vec<Attempt> {
        self.shared
            .canaries
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// First request that the host refused to the supervisor, so that it could not decide.
    pub(super) fn failure(&self) -> Option<SetupError> {
        let failure = self.shared.failure.lock();
        failure.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for the ledger, which is complete once every filtered process has ended. Returns `None` if the thread
    /// is lost.
    pub fn finish(self) -> Option<Ledger> {
        self.ledger.recv_timeout(HAND_OVER).ok()
    }
}

/// State of the thread.
struct Supervision {
    listener: OwnedFd,
    addresses: StubAddresses,
    /// The client was given the stub's address.
    stub_is_known: bool,
    clock: Clock,
    lines: LineCount,
    shared: Arc<Shared>,
    ledger: Ledger,
    callers: Callers,
    /// Processors after the launch, if it runs on fewer until then.
    processors: Option<Processors>,
    /// Refusals are made; false in a test build only.
    refuses: bool,
    /// The memory of a caller was opened once, to test the right to it.
    has_opened_memory: bool,
    /// Calls are recorded; false in a test build only.
    records: bool,
    /// Path lookups are recorded.
    lookups: bool,
    /// Unix sockets are allowed: only the client can listen at one.
    unix_sockets: bool,
    /// Network and file systems are the container's.
    shared_network: bool,
    /// TCP sockets of the client, if the supervisor makes and connects them.
    sockets: Option<Sockets>,
    process_limit: ProcessLimit,
    memory: KernelMemory,
    /// The client's writable trees, by their paths inside.
    own_trees: [PathBuf; 3],
    /// Device and inode of each object below which Landlock allows to execute files; `None` with mounts of the client's
    /// own, whose flags say so.
    executable: Option<HashSet<(u64, u64)>>,
    secrets: SecretScanner,
}

fn executable(root: &RootPlan) -> HashSet<(u64, u64)> {
    let paths = root.executable();
    let identities = paths.iter().filter_map(|path| identity(path));
    identities.collect()
}

/// Device and inode of the object at a path.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let status = fs::metadata(path).ok()?;
    Some((status.dev(), status.ino()))
}

/// State of the listener after poll(2).
enum Ready {
    Call,
    /// The last filtered process has ended.
    End,
}

impl Supervision {
    fn run(mut self) -> Ledger {
        notify::wake_on_this_processor(&self.listener);
        if let Some(processors) = &self.processors {
            processors.give_first(SELF);
        }
        while let Ok(Ready::Call) = self.wait() {
            match notify::receive(&self.listener) {
                Ok(notification) => self.handle(&notification),
                // The caller ended after poll(2), or a signal came.
                Err(Errno::ENOENT | Errno::EINTR) => {}
                Err(errno) => {
                    self.fail("SECCOMP_IOCTL_NOTIF_RECV", errno);
                    break;
                }
            }
        }
        self.ledger
    }

    fn wait(&mut self) -> Result<Ready, Errno> {
        loop {
            let mut polled = [PollFd::new(self.listener.as_fd(), PollFlags::POLLIN)];
            match poll(&mut polled, PollTimeout::NONE) {
                Ok(_) => {}
                Err(Errno::EINTR) => continue,
                Err(errno) => {
                    self.ledger
                        .fault(format!("cannot poll the seccomp listener: {errno}"));
                    return Err(errno);
                }
            }
            let events = polled
                .first()
                .and_then(PollFd::revents)
                .unwrap_or(PollFlags::empty());
            // POLLHUP comes without POLLIN once all notifications were received.
            return if events.contains(PollFlags::POLLIN) {
                Ok(Ready::Call)
            } else if events.contains(PollFlags::POLLHUP) {
                Ok(Ready::End)
            } else {
                self.ledger
                    .fault(format!("the seccomp listener failed: {events:?}"));
                Err(Errno::EIO)
            };
        }
    }

    fn handle(&mut self, notification: &Notification) {
        let launched = self.shared.launched.load(Ordering::SeqCst);
        if launched && let Some(processors) = self.processors.take() {
            // Fewer processors make it slower, no more.
            let _ = processors.free(SELF);
        }
        let system_call = call::native(notification);
        if system_call.is_some_and(call::makes_process) {
            return self.handle_fork(notification);
        }
        if self.shared_network
            && let Some(change) = system_call
                .and_then(|one| chmod_proxy::requested_change(one, &notification.arguments))
        {
            return self.make_change(notification, change);
        }
        if let Some(paths) = system_call.and_then(|one| lookup::paths(one, &notification.arguments))
        {
            if !system_call.is_some_and(|one| call::makes_fifo(one, &notification.arguments)) {
                return self.continue_lookup(notification, paths, launched);
            }
            if self.lookups {
                self.record_lookup(notification, paths, launched);
            }
        }
        self.judge(notification, system_call, launched);
    }

    fn handle_fork(&mut self, notification: &Notification) {
        let ending = self.shared.ending.load(Ordering::SeqCst);
        let answer = if !ending && self.process_limit.admits_one_more() {
            Answer::Continue
        } else {
            // fork(2) fails with EAGAIN at a limit.
            Answer::Refuse(Errno::EAGAIN)
        };
        self.answer(notification, answer);
    }

    /// Decides on a call, records and answers it.
    fn judge(
        &mut self,
        notification: &Notification,
        system_call: Option<SystemCall>,
        launched: bool,
    ) {
        let at_us = self.clock.elapsed_us();
        let call = call::read(notification);
        // A root without its rights on files may read the memory by another call, and later not the client's files.
        if !self.has_opened_memory {
            self.has_opened_memory = true;
            if let Err(errno) = notify::open_memory(notification.thread) {
                self.fail("/proc/PID/mem", errno);
            }
        }
        let context = Context {
            addresses: self.addresses,
            stub_is_known: !launched || self.stub_is_known,
            canaries: !launched,
            unix_sockets: self.unix_sockets,
            shared_network: self.shared_network,
        };
        let mut decision = decide(&call, context);
        // Before the launch only our own probe calls, so the caller need not be recorded. Reading it is most of the cost
        // of a call that leaves no entry.
        let leaves_entry = !decision.passes() || !self.memory.passes_unlisted(&call);
        let caller = if !launched || !leaves_entry {
            Caller::default()
        } else if matches!(call, Call::Execute { .. }) {
            self.callers.read_with_parent(notification.thread)
        } else {
            self.callers.read(notification.thread)
        };
        if !notify::is_valid(&self.listener, notification.id) {
            // The caller ended while it waited. The call was not made, and /proc may have shown another process.
            return;
        }
        let mut planned = None;
        if !self.refuses {
            decision.answer = Answer::Continue;
        } else if launched {
            decision = self.memory.within(&call, decision);
            if is_stream_to_resolver(notification, &call, &caller) {
                decision = decision.denied(Errno::ECONNREFUSED);
            }
            if self.sockets.is_some() {
                (decision, planned) =
                    self.plan_connection(notification, system_call, &call, decision);
            }
        }
        if !self.records {
            decision.attempts.clear();
        }
        let syscall = if let Call::Foreign(call) = &call {
            call.interface()
        } else {
            system_call.map_or("unknown", SystemCall::name)
        };
        let connects_before = self.ledger.connects.len();
        if launched {
            for attempt in decision.attempts {
                self.ledger.add(attempt, syscall, &caller, at_us);
            }
            if let Call::Execute {
                at,
                program,
                arguments,
            } = &call
            {
                let refused =
                    self.record_start(notification, (*at, program), arguments, &caller, at_us);
                if let Some(errno) = refused {
                    decision.answer = Answer::Refuse(errno);
                }
            }
            if let Some(planned) = planned {
                return self.connect(notification, planned);
            }
            if self.makes_socket(&call, decision.answer) {
                return self.make_socket(notification);
            }
            for descriptor in decision.stub_descriptors {
                self.record_connection(notification, descriptor, &caller);
            }
        } else {
            let mut recorded = Ledger::default();
            for attempt in decision.attempts {
                recorded.add(attempt, syscall, &caller, at_us);
            }
            let canaries = self.shared.canaries.lock();
            let mut canaries = canaries.unwrap_or_else(PoisonError::into_inner);
            canaries.append(&mut recorded.attempts);
        }
        if let Delivery::CallerGone = self.answer(notification, decision.answer) {
            self.ledger.connects.truncate(connects_before);
        }
    }

    /// Records a request that the host refuses.
    fn fail(&mut self, request: &str, errno: Errno) {
        let text = format!("cannot supervise a system call ({request}): {errno}");
        self.ledger.fault(text);
        let failed = SetupError {
            step: Step::Supervise,
            object: request.to_owned(),
            errno: errno as i32,
        };
        let failure = self.shared.failure.lock();
        failure
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(failed);
    }

    fn answer(&mut self, notification: &Notification, answer: Answer) -> Delivery {
        match notify::answer(&self.listener, notification.id, answer) {
            Ok(()) => Delivery::Done,
            // The caller was killed before the answer.
            Err(Errno::ENOENT) => Delivery::CallerGone,
            Err(errno) => {
                self.ledger
                    .fault(format!("cannot answer a system call: {errno}"));
                Delivery::Done
            }
        }
    }
}

/// Checks for a TCP connection to the resolver. The resolver answers datagrams only, so the kernel would refuse the
/// connection too, but count it without an entry in the ledger.
fn is_stream_to_resolver(notification: &Notification, call: &Call, caller: &Caller) -> bool {
    let (Call::To(destinations) | Call::FastOpen(destinations)) = call else {
        return false;
    };
    destinations.iter().any(|destination| {
        let Address::Inet(address) = destination.address else {
            return false;
        };
        let to_resolver = (address.ip().to_canonical(), address.port()) == RESOLVER;
        let is_tcp = || {
            socket_state::is_unconnected_tcp(notification.thread, caller, destination.descriptor)
        };
        destination.connects && to_resolver && is_tcp().is_ok()
    })
}

/// Result of an answer.
enum Delivery {
    Done,
    /// The caller no longer waited, so its call is not made.
    CallerGone,
}
