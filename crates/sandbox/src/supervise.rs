//! The supervisor: one plain thread that answers what the client's filter notifies, and writes it down.
//!
//! It waits with poll(2), receives one call, reads what it is about, makes sure that the caller still waits,
//! decides, records, answers. It never answers what it could not record. A call that only looks a path up is let
//! go on before it is written down: nothing about it is decided here. It ends when no filtered process is
//! left. It talks to the event loop by one bounded channel, for one purpose: at a connection to the stub, what
//! lies on the client's standard output is read before the connection is made.

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
mod socket_state;
mod sockets;

use std::net::SocketAddr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
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

use self::behalf::Sockets;
use self::call::{Address, Call};
use self::caller::Caller;
use self::decide::{Context, decide};
use self::kernel_memory::KernelMemory;
use self::ledger::{Connect, Ledger};
use self::process_limit::Offspring;
use super::filter::SystemCall;
use super::plan::Plan;
use super::weaken::Protection;

/// A connection waits at most this long for the runner to read the client's output.
const BARRIER: Duration = Duration::from_secs(1);
/// The ledger is handed over within this time after the last filtered process has ended.
const HAND_OVER: Duration = Duration::from_secs(2);

/// What the event loop is asked at a connection to the stub: how many lines stand on standard output.
pub type LinesWanted = SyncSender<usize>;

/// Where connections arrive at the stub: as many are to be accepted there as were let through.
#[derive(Clone, Copy, Debug)]
pub struct StubAddresses {
    /// The provider that the client was given.
    pub stub: SocketAddr,
    /// The second host, where there is one. The way there is an attempt: only an answer can have led there.
    pub elsewhere: Option<SocketAddr>,
}

/// The supervisor, running.
#[derive(Debug)]
pub struct Supervisor {
    shared: Arc<Shared>,
    ledger: Receiver<Ledger>,
}

#[derive(Debug, Default)]
struct Shared {
    /// The client's own program runs; until then every call is our own, for the canaries.
    launched: AtomicBool,
    /// The client has ended, and nothing may be started any more.
    ending: AtomicBool,
    /// What was recorded before that.
    canaries: Mutex<Vec<Attempt>>,
}

impl Supervisor {
    /// Starts it. Questions come in on the other end of `questions`.
    ///
    /// # Errors
    /// The errno with which no thread could be made, or `EINVAL` where the kernel's notifications have another
    /// layout than ours.
    pub fn start(
        listener: OwnedFd,
        served: StubAddresses,
        clock: Clock,
        questions: tokio::sync::mpsc::Sender<LinesWanted>,
        (plan, stage): (&Plan, Pid),
        secrets: &SecretScanner,
    ) -> Result<Self, Errno> {
        if !notify::sizes_match()? {
            return Err(Errno::EINVAL);
        }
        let refuses = plan.keeps(Protection::Refusals);
        let on_behalf = plan.is_inherited() && refuses;
        let sockets = on_behalf.then(|| Sockets::start(served)).transpose()?;
        let shared = Arc::new(Shared::default());
        let (hand_over, ledger) = sync_channel(1);
        let watch = Supervision {
            listener,
            served,
            stub_is_known: plan.server.is_known,
            clock,
            questions,
            shared: Arc::clone(&shared),
            ledger: Ledger::default(),
            refuses,
            sockets,
            records: plan.keeps(Protection::Records),
            lookups: plan.lookups,
            unix_sockets: !plan.is_inherited() && !plan.shows_host_directories(),
            shared_network: plan.is_inherited(),
            offspring: Offspring::new(plan.offspring),
            memory: KernelMemory::new(plan, stage),
            own_trees: [&plan.root.home, &plan.root.tmp, &plan.root.work].map(PathBuf::from),
            secrets: secrets.clone(),
        };
        thread::Builder::new()
            .name("supervisor".to_owned())
            .spawn(move || {
                // Where nobody takes it the run is over.
                let _ = hand_over.send(watch.run());
            })
            .map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(libc::EAGAIN)))?;
        Ok(Self { shared, ledger })
    }

    /// From here on, calls are the client's.
    pub fn launch(&self) {
        self.shared.launched.store(true, Ordering::SeqCst);
    }

    /// From here on, no process is made: whoever ends what is left must not run after it.
    pub fn refuse_new_processes(&self) {
        self.shared.ending.store(true, Ordering::SeqCst);
    }

    /// What was recorded of the canaries.
    pub fn canaries(&self) -> Vec<Attempt> {
        self.shared
            .canaries
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The ledger, once every filtered process has ended; `None` where the supervisor was lost.
    pub fn finish(self) -> Option<Ledger> {
        self.ledger.recv_timeout(HAND_OVER).ok()
    }
}

/// The thread's own state.
struct Supervision {
    listener: OwnedFd,
    served: StubAddresses,
    /// The client was told where it is.
    stub_is_known: bool,
    clock: Clock,
    questions: tokio::sync::mpsc::Sender<LinesWanted>,
    shared: Arc<Shared>,
    ledger: Ledger,
    /// Both false in a test build only.
    refuses: bool,
    records: bool,
    /// Paths that are looked up are evidence.
    lookups: bool,
    /// Nobody but the client can be behind one.
    unix_sockets: bool,
    /// Network and file systems are the container's.
    shared_network: bool,
    /// TCP sockets of the client, where the supervisor makes and connects them.
    sockets: Option<Sockets>,
    offspring: Offspring,
    memory: KernelMemory,
    /// The client's writable trees, as it names them.
    own_trees: [PathBuf; 3],
    secrets: SecretScanner,
}

/// What the listener has.
enum Ready {
    Call,
    /// No filtered process is left.
    End,
}

impl Supervision {
    fn run(mut self) -> Ledger {
        notify::wake_on_this_processor(&self.listener);
        while let Ok(Ready::Call) = self.wait() {
            match notify::receive(&self.listener) {
                Ok(notification) => self.handle(&notification),
                // The caller has gone away between poll and now, or a signal came.
                Err(Errno::ENOENT | Errno::EINTR) => {}
                Err(errno) => {
                    self.ledger
                        .fault(format!("a call could not be received: {errno}"));
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
                        .fault(format!("the listener could not be polled: {errno}"));
                    return Err(errno);
                }
            }
            let events = polled
                .first()
                .and_then(PollFd::revents)
                .unwrap_or(PollFlags::empty());
            // A hang-up comes alone once everything was received.
            return if events.contains(PollFlags::POLLIN) {
                Ok(Ready::Call)
            } else if events.contains(PollFlags::POLLHUP) {
                Ok(Ready::End)
            } else {
                self.ledger
                    .fault(format!("the listener is lost: {events:?}"));
                Err(Errno::EIO)
            };
        }
    }

    fn handle(&mut self, notification: &Notification) {
        let system_call = call::native(notification);
        if system_call.is_some_and(call::makes_process) {
            return self.grow(notification);
        }
        if self.shared_network
            && let Some(change) =
                system_call.and_then(|one| chmod_proxy::change(one, &notification.arguments))
        {
            return self.change(notification, change);
        }
        let launched = self.shared.launched.load(Ordering::SeqCst);
        if let Some(paths) = system_call.and_then(|one| lookup::paths(one, &notification.arguments))
        {
            if !system_call.is_some_and(|one| call::makes_fifo(one, &notification.arguments)) {
                return self.look_up(notification, paths, launched);
            }
            if self.lookups {
                self.note_lookup(notification, paths, launched);
            }
        }
        self.judge(notification, system_call, launched);
    }

    fn grow(&mut self, notification: &Notification) {
        let ending = self.shared.ending.load(Ordering::SeqCst);
        let answer = if !ending && self.offspring.may_grow() {
            Answer::Continue
        } else {
            // As fork(2) says where a limit is met.
            Answer::Refuse(Errno::EAGAIN)
        };
        self.answer(notification, answer);
    }

    /// A call whose outcome is decided here, and written down before it is answered.
    fn judge(
        &mut self,
        notification: &Notification,
        system_call: Option<SystemCall>,
        launched: bool,
    ) {
        let at_us = self.clock.elapsed_us();
        let call = call::read(notification);
        // Before the launch only our own probe calls, and who it is matters to nobody.
        let caller = if launched && !self.memory.passes_unlisted(&call) {
            Caller::read(notification.thread)
        } else {
            Caller::default()
        };
        if !notify::is_valid(&self.listener, notification.id) {
            // Ended while it waited: the call was not made, and what was read may be another process's.
            return;
        }
        let context = Context {
            served: self.served,
            stub_is_known: !launched || self.stub_is_known,
            canaries: !launched,
            unix_sockets: self.unix_sockets,
            shared_network: self.shared_network,
        };
        let mut decision = decide(&call, context);
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
                let absence = self.start(notification, (*at, program), arguments, &caller, at_us);
                if let Some(errno) = absence.filter(|_| self.refuses) {
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
                self.reach_stub(notification, descriptor, &caller);
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
        if let Made::No = self.answer(notification, decision.answer) {
            self.ledger.connects.truncate(connects_before);
        }
    }

    /// A program is about to be started. Returns the errno for one that is absent and so not listed: the kernel must
    /// not look again, since another thread may have made it by then.
    fn start(
        &mut self,
        notification: &Notification,
        (at, program): (i32, &[u8]),
        arguments: &[Vec<u8>],
        caller: &Caller,
        at_us: u64,
    ) -> Option<Errno> {
        let absence = caller.absence(at, program);
        if absence.is_none() {
            let named = caller.named(at, program);
            self.ledger.start(&named, arguments, caller, &self.secrets);
        } else if self.lookups {
            let wanted = lookup::executed(notification.thread, at, program);
            self.ledger.lookups.add(wanted, at_us);
        }
        absence
    }

    /// A connection is about to be made: the runner reads the client's output before that. A socket that is
    /// connected or connecting makes no new one.
    fn reach_stub(&mut self, notification: &Notification, descriptor: i32, caller: &Caller) {
        match socket_state::is_unconnected_tcp(notification.thread, caller, descriptor) {
            Ok(false) => return,
            // No TCP socket: an address kept for later, no connection.
            Err(Errno::EOPNOTSUPP | Errno::ENOPROTOOPT | Errno::ENOTSOCK | Errno::EBADF) => return,
            Ok(true) => {}
            // Killed meanwhile, so that there is nothing to look at, and no call.
            Err(_) if !notify::is_valid(&self.listener, notification.id) => return,
            Err(errno) => self
                .ledger
                .fault(format!("a socket could not be looked at: {errno}")),
        }
        let lines = self.lines_before_connect();
        self.ledger.connects.push(Connect {
            at_us: self.clock.elapsed_us(),
            lines,
        });
    }

    /// Asks the event loop for the number of lines on the client's standard output.
    fn lines_before_connect(&self) -> Option<usize> {
        let (reply, lines) = sync_channel(1);
        let asked = self.questions.blocking_send(reply);
        asked.ok().and_then(|()| lines.recv_timeout(BARRIER).ok())
    }

    fn answer(&mut self, notification: &Notification, answer: Answer) -> Made {
        match notify::answer(&self.listener, notification.id, answer) {
            Ok(()) => Made::AsAnswered,
            // Gone while it waited, by SIGKILL.
            Err(Errno::ENOENT) => Made::No,
            Err(errno) => {
                self.ledger
                    .fault(format!("a call could not be answered: {errno}"));
                Made::AsAnswered
            }
        }
    }
}

/// Checks for a TCP connection to the resolver, which answers datagrams alone. The kernel would refuse it as well, and
/// count a connection that no other line explains.
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

/// What an answer led to.
enum Made {
    AsAnswered,
    /// Nobody waited for it any more: whatever it said, the call is not made.
    No,
}
