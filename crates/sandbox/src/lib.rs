//! Seals a program and starts it: own namespaces, a new root, Landlock, a seccomp filter, no capability, and a
//! ledger of every attempt to reach anything.
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
//! a [`plan`], starts it with [`spawn`](spawn::spawn), and drives it with [`set_up`].
//!
//! # Processes
//!
//! - The **runner**, on the host: starts the stage as a fresh exec of its own file with an empty environment,
//!   keeps the control socket and the client's output pipes ([`spawn`]), and writes the id maps as root.
//! - The **stage** ([`stage`]), which becomes the stub and the [`resolver`]: user and network namespace,
//!   loopback, their sockets;
//!   then a sandbox of its own without files, connections, programs or capabilities.
//! - **Init** ([`init`]), pid 1 of the client's other namespaces: root, launch, reaping, the end of everything.
//!
//! | step | who | why there |
//! |---|---|---|
//! | 1 groups dropped (root) | stage | an unmapped group would stay with the client |
//! | 2 user and network namespace | stage | always, also as root: capabilities end at its border |
//! | 3 id maps | runner (root), stage (user) | only a writer outside may map an id that is not its own |
//! | 4 death signal, and who the parent is | stage | a runner that is gone is not noticed otherwise |
//! | 5 loopback up, links and routes listed | stage | the run does not start where there is more than `lo` |
//! | 6 the stub's socket and the resolver's | stage | made inside, unreachable from the host; port 53 takes a capability |
//! | 7 pid, mount, ipc, uts, cgroup namespaces | stage → init | by clone: the stage must still start no thread in them |
//! | 8 mounts private | init | first of all: nothing that follows shows on the host |
//! | 9 sources taken and sealed | init | while they can still be read; a path is the object that was checked, or none |
//! | 10 the namespace's user | init, stage | before any tmpfs: one that an unmapped id owns refuses every mkdir |
//! | 11 root, home, tmp, /etc, /dev, /proc, binds | init | nothing of the host but what the plan names |
//! | 12 pivot_root, old root gone, / read-only | init | |
//! | 13 no_new_privs, capabilities | init | inherited by the client's process |
//! | 14 the client's process | init → client | then init is not dumpable: /proc/1 is closed to its own user |
//! | 15 session, signals, limits | client | |
//! | 16 Landlock | client | init is never in its domain |
//! | 17 filter | client | last: the steps before need calls that it refuses or notifies |
//! | 18 its listener to the runner | init | the client shares init's table of descriptors until then, and holds no copy |
//! | 19 read-back and canaries | client's child | in the client's own domain, filter and credentials |
//! | 20 judgement | runner | one layer or canary that does not hold, and nothing is executed |
//! | 21 exec | client | |
//!
//! From step 18 on the **supervisor** ([`supervise`]), a thread of the runner, answers what the filter notifies
//! and keeps the ledger.
//!
//! A host may refuse namespaces. In tier `inherited` steps 1 to 3, the namespaces of step 7, and steps 8 to 12 are
//! left out: the network is the container's and must have loopback only, a [`guard`] makes home and temporary
//! directory on its disk, Landlock stands alone before everything else of it, and init is a subreaper in place of a
//! pid 1. What the filter and the supervisor do more there is said where they do it. Which tier a host has is found
//! by making the sandbox, and nothing else.
//!
//! The end: init polls a gate whose other end only the stage holds and a channel whose other end only the
//! runner holds, and ends with either; the kernel ends everything in a pid namespace with its init. The stage
//! ends with the control socket and by its death signal. Init has one as well, since a stopped process polls nothing:
//! SIGKILL as pid 1, and SIGCONT as a subreaper, which has its descendants to end. Home and temporary directory are a
//! tmpfs inside, so there is nothing on the host to remove; the guard, where there is one, removes when the runner is
//! gone.
//!
//! Some known ways out of sandboxes cannot apply here. A link that the client leaves misleads no clean-up and no walk:
//! both go by descriptors and follow none. State and policy cannot be written from inside, since nothing of the host is
//! writable and no report may lie below a shown path. A path that is swapped between look and use is another device or
//! inode, and is refused. Landlock's rule for sockets by path (ABI 9) is not needed, since unix sockets are refused
//! where directories of the host or a whole container can be seen.

pub mod canary;
pub mod cgroup;
pub mod core_dumps;
pub mod counters;
pub mod dns;
pub mod error;
pub mod filter;
pub mod guard;
pub mod held;
pub mod identity;
mod init;
pub mod landlock;
mod launch;
pub mod limits;
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
pub mod spawn;
pub mod stage;
pub mod supervise;
pub mod verify;
pub mod weaken;

pub use sealed::{Ran, Sandbox, SealError, no_server, reenter};
