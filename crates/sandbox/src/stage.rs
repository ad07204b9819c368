//! The stage: a fresh exec of this executable that makes the namespaces, starts init, and becomes the stub.
//!
//! The stage starts with an empty environment and three descriptors: the control socket on 0, the client's standard
//! output and error on 1 and 2. The process is single-threaded. As stub and resolver it runs in the network namespace.
//! Its sandbox is tighter than the client's: no files, no new connections, no exec, no capabilities.

use std::ffi::OsString;
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
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::Signal;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket, socketpair};
use nix::sys::stat::{Mode, umask};
use nix::unistd::{chdir, dup2_stderr, dup2_stdin, dup2_stdout, getppid, setsid};
use sys::errno_of;
use sys::fds;
use sys::net::set_loopback_up;
use sys::process::{Side, clone_process, reset_child_signal};
use sys::processors::{Processors, SELF};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::runtime::Runtime;

use super::error::{At as _, SetupError, Step};
use super::init::{self, Inheritance};
use super::message::{self, FromStage, ToStage};
use super::netns_check::{self, Network};
use super::plan::{Identity, Plan, Ports};
use super::resolver::{self, Resolver};
use super::sock_diag::SocketDiag;
use super::spawn::OwnNamespaces;
use super::{core_dumps, filter, identity, landlock, privilege};

/// Role of the process after the clone of init.
enum Role {
    Init(Inheritance),
    Stub {
        sockets: Sockets,
        network: Network,
        gate: OwnedFd,
        processors: Option<Processors>,
    },
}

/// Socket ends that arrive together with the plan.
struct Ends {
    /// Init's end of its channel to the runner.
    channel: OwnedFd,
    /// The resolver's end of the socket on which it reports questions.
    questions: OwnedFd,
    /// The client's end of its standard input.
    stdin: Option<OwnedFd>,
    /// Mounts that init may not open itself.
    carried: Vec<OwnedFd>,
}

/// Address of the second host: a loopback address that differs from the stub's.
const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// Sockets of the stub and the resolver.
struct Sockets {
    stub: TcpListener,
    /// Listener of the second host, if the scenario has one.
    elsewhere: Option<TcpListener>,
    resolver: UdpSocket,
    questions: OwnedFd,
}

/// Arguments of the server's function, which runs inside the sealed network namespace. The filter refuses new sockets
/// and files.
pub struct Inside {
    /// Settings from [`ServerPlan::settings`](super::plan::ServerPlan::settings).
    pub settings: String,
    /// Listener on 127.0.0.1.
    pub listener: TcpListener,
    /// Listener on 127.0.0.2, if the plan asks for one.
    pub elsewhere: Option<TcpListener>,
    /// Scanner for the credential of the run.
    pub credential: Option<SecretScanner>,
    /// Lister of bytes that are still in the send queues of the server's clients.
    pub unacknowledged: SocketDiag,
    /// Commands of the runner.
    pub from_runner: OwnedReadHalf,
    /// Journal for the runner, one entry a line.
    pub to_runner: OwnedWriteHalf,
}

/// Runs the stage's process. The argument names its [`OwnNamespaces`]; `serve` is the server's function, called after the
/// last restriction.
pub fn main(
    arguments: &[OsString],
    serve: impl AsyncFnOnce(Inside) -> std::io::Result<()>,
) -> ExitCode {
    // A stage that is stopped before it has its plan must end too. An error shows at the next setting of the signal.
    let _ = prctl::set_pdeathsig(Signal::SIGKILL);
    let Ok(control) = std::io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .map(UnixStream::from)
    else {
        return ExitCode::FAILURE;
    };
    let done = make_own_namespaces(arguments.first()).and_then(|()| {
        let (plan, ends) = receive_plan(&control)?;
        match make_namespaces(&plan, &control, ends)? {
            Role::Init(inheritance) => Ok(Some((plan, inheritance))),
            Role::Stub {
                sockets,
                network,
                gate,
                processors,
            } => {
                become_stub(&plan, &control, sockets, (network, processors), serve)?;
                // Init ends when this end of the gate closes.
                drop(gate);
                Ok(None)
            }
        }
    });
    match done {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some((plan, inheritance))) => {
            // A copy in init would keep the control socket open after the stage's end. Init replaces descriptor 0
            // later.
            drop(control);
            sys::process::exit_now(init::main(&plan, inheritance))
        }
        Err(error) => {
            // Writing fails only if the runner has ended.
            let _ = message::write_line(&control, &FromStage::Failed { error });
            ExitCode::FAILURE
        }
    }
}

/// Makes the user and the network namespace, which needs no plan. Neither has an id or a device yet.
fn make_own_namespaces(named: Option<&OsString>) -> Result<(), SetupError> {
    chdir("/").at_object(Step::StartStage, "/")?;
    // Reset SIGCHLD and the umask inherited from the caller.
    reset_child_signal();
    umask(Mode::from_bits_truncate(0o022));
    core_dumps::leave_out_memory();
    // The terminal sends Ctrl-C to the whole foreground group, but only the runner handles it.
    setsid().at(Step::NewSession)?;
    // The runner checks the hard limit for what the plan needs.
    let (_, hard) =
        getrlimit(Resource::RLIMIT_NOFILE).at_object(Step::StartStage, "RLIMIT_NOFILE")?;
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).at_object(Step::StartStage, "RLIMIT_NOFILE")?;
    let flags = match named.and_then(|word| OwnNamespaces::named(word)) {
        Some(OwnNamespaces::UserAndNetwork) => CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET,
        Some(OwnNamespaces::User) => CloneFlags::CLONE_NEWUSER,
        Some(OwnNamespaces::None) => return Ok(()),
        None => return Err(Errno::EINVAL).at_object(Step::StartStage, "its argument"),
    };
    identity::drop_groups()?;
    unshare(flags).at(Step::UserAndNetworkNamespace)?;
    // The new capabilities have cleared the death signal (prctl(2)).
    prctl::set_pdeathsig(Signal::SIGKILL).at(Step::ArmDeathSignal)
}

/// Completes the namespaces, clones init, and opens the sockets inside while init builds the root.
fn make_namespaces(plan: &Plan, control: &UnixStream, ends: Ends) -> Result<Role, SetupError> {
    if !plan.is_inherited() {
        write_maps(control, plan.identity)?;
        identity::become_inside_group(plan.identity)?;
    }
    arm_death_signal(plan)?;
    let (gate, init_gate) = socketpair(
        AddressFamily::Unix,
        SockType::SeqPacket,
        None,
        SockFlag::SOCK_CLOEXEC,
    )
    .at(Step::CloneInit)?;
    let Ends {
        channel,
        questions,
        stdin,
        carried,
    } = ends;
    // Each side closes the descriptors of the other side.
    let processors = Processors::divided_by_parent();
    match clone_process(init_namespaces(plan)).at(Step::CloneInit)? {
        Side::Child => {
            return Ok(Role::Init(Inheritance {
                channel,
                gate: init_gate,
                stdin,
                carried,
                processors,
            }));
        }
        Side::Parent(init) => {
            if let Some(processors) = &processors {
                processors.give_first(init);
            }
        }
    }
    drop((init_gate, channel, stdin, carried));
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
    let ports = Ports {
        stub: port,
        elsewhere: elsewhere_port.map(|address| address.port()),
    };
    match message::send(&gate, &ports, &[]) {
        // Init has failed, and tells the runner why.
        Ok(()) | Err(Errno::EPIPE) => {}
        Err(errno) => return Err(errno).at(Step::CloneInit),
    }
    Ok(Role::Stub {
        sockets: Sockets {
            stub: listener,
            elsewhere,
            resolver,
            questions,
        },
        network,
        gate,
        processors,
    })
}

/// Clone flags of the namespaces of init and the client, in addition to the stage's user and network namespace.
const INIT_NAMESPACES: libc::c_int = libc::CLONE_NEWPID
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
    let mut descriptors = descriptors.into_iter();
    let (Some(memory), Some(channel), Some(questions)) =
        (descriptors.next(), descriptors.next(), descriptors.next())
    else {
        return Err(Errno::EBADMSG).at(Step::ReceivePlan);
    };
    let mut file = File::from(memory);
    let mut text = Vec::new();
    file.rewind()
        .and_then(|()| file.read_to_end(&mut text))
        .at(Step::ReceivePlan)?;
    let plan: Plan = serde_json::from_slice(&text)
        .map_err(|_| Errno::EBADMSG)
        .at(Step::ReceivePlan)?;
    let stdin = if plan.client.reads_input {
        let sent = descriptors.next().ok_or(Errno::EBADMSG);
        Some(sent.at(Step::ReceivePlan)?)
    } else {
        None
    };
    let ends = Ends {
        channel,
        questions,
        stdin,
        carried: descriptors.collect(),
    };
    Ok((plan, ends))
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

/// Makes the kernel kill the stage when the runner ends. If the runner has ended already, the parent has changed.
fn arm_death_signal(plan: &Plan) -> Result<(), SetupError> {
    prctl::set_pdeathsig(Signal::SIGKILL).at(Step::ArmDeathSignal)?;
    if getppid().as_raw() == plan.runner_pid {
        Ok(())
    } else {
        Err(Errno::ESRCH).at(Step::ArmDeathSignal)
    }
}

/// Sets loopback up in a new network namespace, and rejects a network with more than loopback.
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
        netns_check::limit_tcp_buffers();
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
    (network, processors): (Network, Option<Processors>),
    serve: impl AsyncFnOnce(Inside) -> std::io::Result<()>,
) -> Result<(), SetupError> {
    let server = sockets.stub.local_addr().at(Step::StubSocket)?;
    let elsewhere = sockets.elsewhere.as_ref().map(TcpListener::local_addr);
    let elsewhere = elsewhere.transpose().at(Step::StubSocket)?;
    identity::become_inside_user(plan.identity)?;
    prctl::set_dumpable(false).at(Step::HideProcess)?;
    null_stdio()?;
    let diag = SocketDiag::open(server).at(Step::ListSockets)?;
    // Made now, because the filter refuses new descriptors later.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()
        .at(Step::EventLoop)?;
    privilege::set_no_new_privileges()?;
    privilege::drop_all(plan.tier)?;
    landlock::restrict_stub(plan.tier)?;
    // The change of user has cleared the death signal (prctl(2)).
    arm_death_signal(plan)?;
    if let Some(processors) = processors {
        processors.free(SELF).at(Step::Filter)?;
    }
    filter::STUB.install().at(Step::Filter)?;
    let serving = FromStage::Serving {
        port: server.port(),
        elsewhere,
        network,
    };
    message::write_line(control, &serving).at(Step::Channel)?;
    serve_inside(plan, &runtime, control, (sockets, diag), serve)
}

/// Replaces descriptors 0 to 2 by /dev/null, because an open copy would delay the end of the client's pipes.
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
                // Biased, so that a flood of DNS queries cannot delay the journal.
                biased;
                outcome = serve(inside) => outcome,
                never = resolver.run() => match never {},
            };
            // The client has ended, so all its queries have arrived.
            resolver.finish().await;
            Ok(outcome)
        })
    };
    match served() {
        Ok(Ok(())) => Ok(()),
        // The journal is incomplete: the runner sees its stream end early.
        Ok(Err(_)) => Err(Errno::EPIPE).at(Step::Channel),
        Err(error) => Err(errno_of(error)).at(Step::Channel),
    }
}
