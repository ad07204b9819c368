//! The stage: a fresh exec of our own file that makes the namespaces, starts init, and becomes the stub.
//!
//! It starts with an empty environment and three descriptors: the control socket on 0, the client's standard
//! output and error on 1 and 2. It is single-threaded. As the stub, with the resolver beside it, it lives in
//! the network namespace, in a sandbox of its own that is tighter than the client's: no file, no connection,
//! no exec, no capability.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use model::case::Tier;
use model::secret::SecretScanner;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket, socketpair};
use nix::sys::stat::{Mode, umask};
use nix::unistd::{chdir, dup2_stderr, dup2_stdin, dup2_stdout, getppid, setsid};
use sys::fds;
use sys::net::set_loopback_up;
use sys::process::{Side, clone_process, reset_child_signal};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::runtime::Runtime;

use super::error::{At as _, SetupError, Step};
use super::held::SocketDiag;
use super::init::{self, Inheritance, Ports};
use super::message::{self, FromStage, ToStage, errno_of};
use super::netns_check::{self, Network};
use super::plan::{Identity, Plan};
use super::resolver::{self, Resolver};
use super::weaken::Protection;
use super::{core_dumps, filter, identity, landlock, privilege};

/// What the process is after the clone.
enum Role {
    Init(Inheritance),
    Stub {
        sockets: Sockets,
        network: Network,
        gate: OwnedFd,
    },
}

/// What the plan came with.
struct Ends {
    /// Init's end of its channel to the runner.
    channel: OwnedFd,
    /// On which the resolver tells the runner what it was asked.
    questions: OwnedFd,
}

/// Address of the second host: loopback as well, and yet another host to a client.
const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// What the stage serves on.
struct Sockets {
    stub: TcpListener,
    /// The second host, where the scenario leads to one.
    elsewhere: Option<TcpListener>,
    resolver: UdpSocket,
    questions: OwnedFd,
}

/// What the server's function gets, inside the sealed network namespace. It makes no new socket and opens no file.
pub struct Inside {
    /// [`ServerPlan::settings`](super::plan::ServerPlan::settings).
    pub settings: String,
    /// On 127.0.0.1.
    pub listener: TcpListener,
    /// On 127.0.0.2, where the plan asks for it.
    pub elsewhere: Option<TcpListener>,
    /// The credential of the run.
    pub credential: Option<SecretScanner>,
    /// Lists bytes that clients of the server still have to deliver.
    pub unacknowledged: SocketDiag,
    /// Orders of the runner.
    pub from_runner: OwnedReadHalf,
    /// What the runner reads, in lines.
    pub to_runner: OwnedWriteHalf,
}

/// Entry of the stage's process; `serve` is what it does once it is sealed.
pub fn main(serve: impl AsyncFnOnce(Inside) -> std::io::Result<()>) -> ExitCode {
    // Armed once more below, where a failure is told. A stage that is stopped before it has its plan must end too.
    let _ = prctl::set_pdeathsig(Signal::SIGKILL);
    let Ok(control) = std::io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .map(UnixStream::from)
    else {
        return ExitCode::FAILURE;
    };
    let done = receive_plan(&control).and_then(|(plan, ends)| {
        match make_namespaces(&plan, &control, ends)? {
            Role::Init(inheritance) => Ok(Some((plan, inheritance))),
            Role::Stub {
                sockets,
                network,
                gate,
            } => {
                become_stub(&plan, &control, sockets, network, serve)?;
                // Held to the end: init lives while this end is open.
                drop(gate);
                Ok(None)
            }
        }
    });
    match done {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some((plan, inheritance))) => {
            // Its copy would keep the control socket open when the stage is gone; 0 follows in init.
            drop(control);
            std::process::exit(init::main(&plan, &inheritance))
        }
        Err(error) => {
            // Where this fails the runner is gone, and there is nobody to tell.
            let _ = message::write_line(&control, &FromStage::Failed { error });
            ExitCode::FAILURE
        }
    }
}

fn make_namespaces(plan: &Plan, control: &UnixStream, ends: Ends) -> Result<Role, SetupError> {
    chdir("/").at(Step::ReceivePlan)?;
    // Our caller's habits are not the sandbox's.
    reset_child_signal();
    umask(Mode::from_bits_truncate(0o022));
    core_dumps::leave_out_memory();
    // Ctrl-C goes to the whole foreground group; it is the runner's to answer.
    setsid().at(Step::NewSession)?;
    if !plan.is_inherited() {
        identity::drop_groups(plan.identity)?;
        unshare(namespaces(plan)).at(Step::UserAndNetworkNamespace)?;
        write_maps(control, plan.identity)?;
        identity::become_inside_group(plan.identity)?;
    }
    arm_death_signal(plan)?;
    let network = seal_network(plan)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).at(Step::StubSocket)?;
    let port = listener.local_addr().at(Step::StubSocket)?.port();
    let elsewhere = if plan.server.needs_elsewhere {
        Some(TcpListener::bind((ELSEWHERE, 0)).at(Step::StubSocket)?)
    } else {
        None
    };
    let elsewhere_port = elsewhere.as_ref().map(TcpListener::local_addr);
    let elsewhere_port = elsewhere_port.transpose().at(Step::StubSocket)?;
    let resolver = resolver::bind(plan.tier).at(Step::ResolverSocket)?;
    let (gate, init_gate) = socketpair(
        AddressFamily::Unix,
        SockType::Stream,
        None,
        SockFlag::SOCK_CLOEXEC,
    )
    .at(Step::CloneInit)?;
    // On each side, what the other one holds is closed at the end of this function.
    Ok(
        match clone_process(init_namespaces(plan)).at(Step::CloneInit)? {
            Side::Child => Role::Init(Inheritance {
                channel: ends.channel,
                gate: init_gate,
                ports: Ports {
                    stub: port,
                    elsewhere: elsewhere_port.map(|address| address.port()),
                },
            }),
            Side::Parent(_) => Role::Stub {
                sockets: Sockets {
                    stub: listener,
                    elsewhere,
                    resolver,
                    questions: ends.questions,
                },
                network,
                gate,
            },
        },
    )
}

fn namespaces(plan: &Plan) -> CloneFlags {
    if plan.keeps(Protection::NetworkNamespace) {
        CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET
    } else {
        CloneFlags::CLONE_NEWUSER
    }
}

/// Namespaces of init and the client; the user and the network namespace are the stage's.
pub const INIT_NAMESPACES: libc::c_int = libc::CLONE_NEWPID
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;

fn init_namespaces(plan: &Plan) -> libc::c_int {
    match plan.tier {
        Tier::Namespace => INIT_NAMESPACES,
        Tier::Inherited => 0,
    }
}

fn receive_plan(control: &UnixStream) -> Result<(Plan, Ends), SetupError> {
    let mut greeting = [0; 1];
    let (_, descriptors) = fds::receive(control, &mut greeting).at(Step::ReceivePlan)?;
    let [memory, channel, questions] = <[OwnedFd; 3]>::try_from(descriptors)
        .map_err(|_| Errno::EBADMSG)
        .at(Step::ReceivePlan)?;
    let mut file = File::from(memory);
    let mut text = Vec::new();
    file.rewind()
        .and_then(|()| file.read_to_end(&mut text))
        .at(Step::ReceivePlan)?;
    let plan = serde_json::from_slice(&text)
        .map_err(|_| Errno::EBADMSG)
        .at(Step::ReceivePlan)?;
    Ok((plan, Ends { channel, questions }))
}

fn write_maps(control: &UnixStream, identity: Identity) -> Result<(), SetupError> {
    match identity {
        Identity::Unmapped { .. } => Ok(()),
        Identity::Own { uid, gid } => identity::map_own(uid, gid),
        Identity::Mapped { .. } => {
            message::write_line(control, &FromStage::Unmapped).at(Step::Channel)?;
            message::read_line(control)
                .at(Step::Channel)
                .map(|ToStage::Mapped| ())
        }
    }
}

/// The stage dies with the runner; a runner that has died already is no longer our parent.
fn arm_death_signal(plan: &Plan) -> Result<(), SetupError> {
    prctl::set_pdeathsig(Signal::SIGKILL).at(Step::ArmDeathSignal)?;
    if getppid().as_raw() == plan.runner_pid {
        Ok(())
    } else {
        Err(Errno::ESRCH).at(Step::ArmDeathSignal)
    }
}

/// Brings our own loopback device up, or takes the network as it is; in both cases there must be nothing else.
fn seal_network(plan: &Plan) -> Result<Network, SetupError> {
    if !plan.is_inherited() {
        let any = socket(
            AddressFamily::Inet,
            SockType::Datagram,
            SockFlag::SOCK_CLOEXEC,
            None,
        )
        .at(Step::LoopbackUp)?;
        set_loopback_up(any).at(Step::LoopbackUp)?;
        netns_check::bound_tcp_buffers();
    }
    let network = Network::read().at(Step::ReadNetwork)?;
    match network.more_than_loopback() {
        None if network.is_loopback_up() => Ok(network),
        None => Err(Errno::ENETDOWN).at(Step::LoopbackUp),
        Some(what) => Err(Errno::ENOTUNIQ).at_object(foreign_network(plan), what),
    }
}

fn foreign_network(plan: &Plan) -> Step {
    if plan.is_inherited() {
        Step::InheritedNetwork
    } else {
        Step::ForeignNetwork
    }
}

fn become_stub(
    plan: &Plan,
    control: &UnixStream,
    sockets: Sockets,
    network: Network,
    serve: impl AsyncFnOnce(Inside) -> std::io::Result<()>,
) -> Result<(), SetupError> {
    let port = sockets.stub.local_addr().at(Step::StubSocket)?.port();
    let elsewhere = sockets.elsewhere.as_ref().map(TcpListener::local_addr);
    let elsewhere = elsewhere.transpose().at(Step::StubSocket)?;
    identity::become_inside_user(plan.identity)?;
    prctl::set_dumpable(false).at(Step::HideProcess)?;
    null_stdio()?;
    let diag = SocketDiag::open().at(Step::ListSockets)?;
    // Its descriptors are made now: the filter makes none later.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()
        .at(Step::EventLoop)?;
    privilege::set_no_new_privileges()?;
    privilege::drop_all(plan.tier)?;
    landlock::restrict_stub(plan.tier)?;
    // Taking the user of the namespace has cleared it.
    arm_death_signal(plan)?;
    filter::STUB.install().at(Step::Filter)?;
    let serving = FromStage::Serving {
        port,
        elsewhere,
        network,
    };
    message::write_line(control, &serving).at(Step::Channel)?;
    serve_inside(plan, &runtime, control, (sockets, diag), serve)
}

/// The client's pipes reach their end only when the stage no longer holds them.
fn null_stdio() -> Result<(), SetupError> {
    let null = open("/dev/null", OFlag::O_RDWR | OFlag::O_CLOEXEC, Mode::empty())
        .at(Step::StandardInput)?;
    dup2_stdin(&null).at(Step::StandardInput)?;
    dup2_stdout(&null).at(Step::StandardInput)?;
    dup2_stderr(&null).at(Step::StandardInput)
}

fn serve_inside(
    plan: &Plan,
    runtime: &Runtime,
    control: &UnixStream,
    (sockets, unacknowledged): (Sockets, SocketDiag),
    serve: impl AsyncFnOnce(Inside) -> std::io::Result<()>,
) -> Result<(), SetupError> {
    let credential = SecretScanner::new(&plan.server.credential).ok();
    let served = || -> std::io::Result<std::io::Result<()>> {
        let control = control.try_clone()?;
        control.set_nonblocking(true)?;
        runtime.block_on(async {
            let (from_runner, to_runner) = tokio::net::UnixStream::from_std(control)?.into_split();
            let mut resolver =
                Resolver::new(sockets.resolver, sockets.questions, credential.clone())?;
            let inside = Inside {
                settings: plan.server.settings.clone(),
                listener: sockets.stub,
                elsewhere: sockets.elsewhere,
                credential,
                unacknowledged,
                from_runner,
                to_runner,
            };
            let outcome = tokio::select! {
                // A flood of questions does not hold the journal.
                biased;
                outcome = serve(inside) => outcome,
                never = resolver.run() => match never {},
            };
            // The client has ended, so what it asked has arrived.
            resolver.finish().await;
            Ok(outcome)
        })
    };
    match served() {
        Ok(Ok(())) => Ok(()),
        // The journal itself is lost: the runner sees it end before it is done.
        Ok(Err(_)) => Err(Errno::EPIPE).at(Step::Channel),
        Err(error) => Err(errno_of(&error)).at(Step::Channel),
    }
}
