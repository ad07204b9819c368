//! Seals a program and starts it: own namespaces, a new root, Landlock, a seccomp filter, no capability, and a
//! ledger of attempts to reach anything.
//!
//! ```standalone_crate
//! use std::process::ExitCode;
//!
//! use sandbox::{Sandbox, SealError, no_server, reenter};
//!
//! fn main() -> ExitCode {
//!     // The sandbox starts this executable again for its own processes.
//!     if let Some(code) = reenter(no_server) {
//!         return code;
//!     }
//!     let script = "echo hello; cat /etc/shadow; getent hosts example.org";
//!     let sandbox = Sandbox::new("/bin/sh").arguments(["-c", script]).variable("PATH", "/usr/bin:/bin");
//!     let shown = ["/usr", "/bin", "/lib", "/lib64"].into_iter().filter(|path| std::fs::exists(path).is_ok_and(|is| is));
//!     match shown.fold(sandbox, Sandbox::show).run() {
//!         Ok(ran) => {
//!             assert_eq!(ran.stdout, b"hello\n");
//!             assert!(ran.stderr.starts_with(b"cat: /etc/shadow: No such file"));
//!             assert!(ran.questions.iter().any(|(asked, _)| asked.name == "example.org"));
//!             let connects = ran.ledger.attempts.iter().filter(|attempt| attempt.syscall == "connect");
//!             assert!(connects.count() > 0);
//!             ExitCode::SUCCESS
//!         }
//! #       // A host without namespaces is no fault of the example, unless it must have them.
//! #       Err(SealError::SetUp(error))
//! #           if error.rules_out_namespaces() && std::env::var_os("SANDBOX_MUST_WORK").is_none() =>
//! #       {
//! #           eprintln!("no sandbox here: {error}");
//! #           ExitCode::SUCCESS
//! #       }
//!         Err(error) => {
//!             eprintln!("{error}");
//!             ExitCode::FAILURE
//!         }
//!     }
//! }
//! ```
//!
//! [`Sandbox`] is the whole of it in one call. An owner with a server inside, an event loop or limits of its own makes
//! a [`plan`], starts it with [`spawn`](spawn::spawn), and drives it with [`set_up`]. An owner whose plan takes time
//! starts the stage before, as [`spawn::Waiting`].
//!
//! # Processes
//!
//! The text below calls the owner *runner*, the server inside *stub*, and the sealed program *client*. The *canary* is
//! a set of probes, made inside before the client starts. *Tier* is the kind of isolation: `namespace`, or `inherited`
//! from a container. [`Sandbox`] has the first one.
//!
//! - The **runner**, on the host: starts the stage as a fresh exec of its own executable with an empty environment
//!   ([`spawn`]). The runner holds the control socket and the client's output pipes, and writes the id maps as root.
//! - The **stage** ([`stage`]), which becomes the stub and the [`resolver`]: makes user and network namespace, loopback
//!   and sockets. Then it enters a sandbox of its own without files, connections, programs or capabilities.
//! - **Init** ([`init`]), pid 1 of the client's other namespaces: builds the root, launches, reaps and ends the client.
//! - The **guard** ([`guard`]), in tier `inherited`: makes and removes the temporary directories on disk.
//!
//! | step | process | reason for the place |
//! |---|---|---|
//! | 1 groups dropped (root) | stage | an unmapped group would stay with the client |
//! | 2 user and network namespace | stage | always, also as root: capabilities are limited to the namespace; before the plan comes, since it takes long |
//! | 3 id maps | runner (root), stage (user) | only a writer outside may map an id that is not its own |
//! | 4 death signal, parent compared | stage | finds that the runner has ended already |
//! | 5 pid, mount, ipc, uts, cgroup namespaces | stage → init | by clone, so that the stage itself stays outside; both then work at once |
//! | 6 loopback up, links and routes listed | stage | a network with more than `lo` ends the run |
//! | 7 sockets of stub and resolver | stage | made inside, unreachable from the host; port 53 needs a capability |
//! | 8 mounts private | init | first, so that no later mount is visible on the host |
//! | 9 sources taken and sealed | init | while init may read them; a path must be the checked object |
//! | 10 the namespace's user | init, stage | before any tmpfs: an unmapped owner makes it refuse every mkdir |
//! | 11 root, home, tmp, /etc, /dev, /proc, binds | init | of the host only the plan's paths |
//! | 12 pivot_root, old root detached, / read-only | init | the sources of the binds are in the old root |
//! | 13 no_new_privs, capabilities | init | inherited by the client's process |
//! | 14 the client's process | init → client | then init is not dumpable: /proc/1 is closed to its own user |
//! | 15 session, signals, limits | client | for the client alone: init needs its own |
//! | 16 Landlock | client | init is never in the domain |
//! | 17 filter | client | last: the steps before need calls that the filter refuses or notifies |
//! | 18 listener to the runner | init | the client shares init's descriptor table until then, and keeps no copy |
//! | 19 self-check and canary | client's child | in the client's own domain, filter and credentials |
//! | 20 judgement | runner | a layer or probe that does not hold prevents the exec |
//! | 21 no new TCP (`inherited`) | client | a probe of the canary connects to the stub itself |
//! | 22 exec | client | after the judgement |
//!
//! From step 18 on the **supervisor** ([`supervise`]), a thread of the runner, answers the filter's notifications and
//! keeps the ledger.
//!
//! A host may refuse namespaces. Isolation `inherited` leaves out steps 1 to 3, the namespaces of step 5, the
//! loopback of step 6, and steps 8 to 12:
//!
//! - The network is the container's and must have loopback only.
//! - A [`guard`] makes home, temporary and working directory on the container's disk.
//! - Landlock alone protects the container's other files.
//! - Init is a subreaper instead of pid 1.
//! - [`filter`] and [`supervise`] have additional rules.
//!
//! The runner finds the tier of a host only by making the sandbox.
//!
//! The end: init polls a gate, whose other end only the stage holds, and a channel, whose other end only the runner
//! holds. Init ends when either closes, and the kernel ends all processes of its pid namespace. The stage ends with the
//! control socket and by its death signal. Init has a death signal too, because a stopped process polls nothing:
//! SIGKILL as pid 1, and SIGCONT as a subreaper, which must end its descendants. Home and temporary directory are on a
//! tmpfs inside, so the host needs no clean-up. The guard of tier `inherited` removes its directories when the runner
//! ends.
//!
//! Some known ways out of sandboxes cannot apply here:
//!
//! - Links of the client cannot mislead the clean-up or the walk: both use descriptors and follow no link.
//! - State and policy cannot be written from inside: of the host only the plan's writable paths can be written, and no
//!   report may lie below a shown path.
//! - A path that is replaced between check and use has another device or inode, and is refused.
//! - Landlock's rule for unix sockets by path (ABI 9) is not needed: unix sockets are refused if directories of the
//!   host or a whole container are visible.

pub mod canary;
pub mod cgroup;
pub mod core_dumps;
pub mod counters;
pub mod dns;
pub mod error;
pub mod filter;
pub mod guard;
pub mod identity;
mod init;
pub mod landlock;
mod launch;
pub mod limits;
pub mod lines;
pub mod message;
mod mount_point;
mod netlink;
pub mod netns_check;
pub mod plan;
pub mod privilege;
mod proc;
pub mod reaper;
pub mod resolver;
pub mod root;
mod sealed;
pub mod self_check;
pub mod set_up;
pub mod sock_diag;
pub mod spawn;
pub mod stage;
pub mod supervise;
pub mod verify;
pub mod weaken;

pub use dns::Asked;
pub use message::ExitStatus;
pub use sealed::{Ran, Sandbox, SealError, no_server, reenter};
pub use supervise::ledger::Ledger;
pub use verify::Isolation;
