//! Advice for errors of a run and of the selftest. A hint and the doctor take it from here, so both say the same.

use std::io;

use model::report::Purpose;
use nix::errno::Errno;
use sandbox::canary::targets::TargetsError;
use sandbox::error::{SetupError, Step};
use sys::errno_of;
use sys::process::OWN_FILE;

use super::Advice;
use crate::collect::Failure;
use crate::output::OutputError;
use crate::prepare::PrepareError;
use crate::run::RunError;
use crate::selftest::SelftestError;

impl RunError {
    /// Finds cause and fixes; `None` if the text of the error is all that is known.
    pub(crate) fn advice(&self) -> Option<Advice> {
        let fix = match self {
            Self::Prepare(error) => return of_preparation(error),
            Self::NotStartable(error) => &error.hint,
            Self::EventLoop(error) | Self::Digest(error) if is_shortage(error) => {
                return Some(at_step(Step::EventLoop, "", error));
            }
            Self::Digest(error) if error.kind() == io::ErrorKind::TimedOut => {
                "copy the program to a disk of this machine"
            }
            Self::Bundle(error) => error.hint(),
            Self::Keep(_) => "set TMPDIR to a directory that you may write",
            Self::Baseline(error) => return error.hint().map(Advice::fix),
            Self::Output(OutputError::Replaces { .. } | OutputError::IsStream { .. }) => {
                "give the report a file of its own"
            }
            Self::Output(OutputError::Beside { .. }) => {
                "a report is written to a new file in its directory and then renamed: name a directory that you may write"
            }
            Self::Input(_) => {
                "name a readable file with --stdin, or leave the input empty with --stdin none"
            }
            Self::Output(_) | Self::EventLoop(_) | Self::NoTier | Self::Digest(_) => return None,
        };
        Some(Advice::fix(fix))
    }
}

fn of_preparation(error: &PrepareError) -> Option<Advice> {
    let fix = match error {
        PrepareError::Targets(
            TargetsError::OutsideSocket(error) | TargetsError::Neighbour(error),
        ) => return Some(at_step(Step::CanaryTarget, "", error)),
        PrepareError::OwnFile { source } if source.kind() == io::ErrorKind::PermissionDenied => {
            "the file of the runner must be readable: `chmod +r`"
        }
        PrepareError::OwnFile { source } => {
            return Some(at_step(Step::StartStage, OWN_FILE, source));
        }
        PrepareError::FewFiles { .. } => {
            let error = io::Error::from(Errno::EMFILE);
            return Some(at_step(Step::StartStage, "", &error));
        }
        PrepareError::Targets(TargetsError::NoOutsideDirectory) => {
            "set HOME to a directory that you may read, outside of /tmp and /home"
        }
        PrepareError::OtherProc => {
            "`mount -t proc proc /proc` in the pid namespace of the runner, or start the runner where /proc is its own"
        }
        PrepareError::NoRight { .. } => {
            "start the runner as the owner of the path; if root starts it, the program has an unused user id and needs a right that all users have"
        }
        PrepareError::Contradiction { .. } | PrepareError::BehindLink { .. } => {
            "name both by their paths without links, as `realpath` prints them, or make less writable"
        }
        PrepareError::OthersTmp { .. } => {
            "start the runner as the owner, or copy the files to a directory of your own outside of /tmp"
        }
        PrepareError::ForbiddenRule { .. } => {
            "show a narrower path, or write the report or the evidence elsewhere"
        }
        PrepareError::Program { .. }
        | PrepareError::Rule { .. }
        | PrepareError::Credential
        | PrepareError::Settings(_)
        | PrepareError::Unspelt(_) => return None,
    };
    Some(Advice::fix(fix))
}

impl SelftestError {
    /// Finds cause and fixes; `None` if the text of the error is all that is known.
    pub(crate) fn advice(&self) -> Option<Advice> {
        match self {
            Self::NotStarted { failure, .. } => failure.advice(Purpose::Judge),
            Self::Directory(error) => Some(Advice::of(error)),
            Self::Targets(error) if is_shortage(error) => {
                Some(at_step(Step::CanaryTarget, "", error))
            }
            Self::Run(error) => error.advice(),
            Self::Policy(_) | Self::Targets(_) | Self::Render(_) | Self::Write(_) => None,
        }
    }
}

impl Failure {
    /// Finds cause and fixes; `None` if the text of the failure is all that is known.
    pub(crate) fn advice(&self, purpose: Purpose) -> Option<Advice> {
        let fix = match self {
            Self::SetUp(error) => return Some(Advice::of(error)),
            Self::NotExecuted(Errno::ENOENT) if purpose == Purpose::Audit => {
                "the loader or the interpreter that it names is not shown: `--read DIRECTORY` shows one"
            }
            Self::NotSealed(_) => {
                "this is a fault of the kernel, of its configuration or of this program: please report it"
            }
            Self::NotExecuted(Errno::ENOENT) => {
                "a dynamic program needs its loader and libraries, a script its interpreter: name their paths in the profile"
            }
            Self::NotExecuted(Errno::EACCES) => {
                "the client runs as another user than root: its file must be readable and executable for all"
            }
            Self::NotExecuted(_) => return None,
        };
        Some(Advice::fix(fix))
    }
}

/// Advice for an error of the system, as if a step of a set-up had failed with it.
fn at_step(step: Step, object: &str, error: &io::Error) -> Advice {
    Advice::of(&SetupError {
        step,
        object: object.to_owned(),
        errno: errno_of(error) as i32,
    })
}

/// True if a thread or memory could not be allocated.
fn is_shortage(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ENOMEM))
}
