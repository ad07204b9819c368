//! An audit: any program in the same sandbox, with nothing expected of it.
//!
//! Parsed types, and the one decision of an audit: what of the host its program is shown. An ordinary dynamic
//! program needs the system's directories, which the policy names, and its own. Whatever would show more of the
//! user's than the program itself has to be asked for.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use stub::scenario::Scenario;

use crate::case::{Access, Origin, PathRule, Presence, SandboxRules};
use crate::policy::may_be_shown;
use crate::profile::{ExpectedAttempt, Variable};

/// The reason of whatever the command line adds.
pub const ASKED_FOR: &str = "asked for on the command line";

/// The parsed policy of audits.
#[derive(Clone, Debug)]
pub struct AuditPolicy {
    /// Short name, as in reports: `audit`.
    pub name: String,
    /// The file that it was read from.
    pub origin: Origin,
    /// What the provider stub answers.
    pub stub: Scenario,
    /// Tiers, limits, and what of the host every program is shown.
    pub sandbox: SandboxRules,
    /// The whole environment, but for what the command line adds.
    pub environment: Vec<Variable>,
}

/// One audit: the policy with what the command line adds to it.
#[derive(Clone, Debug)]
pub struct Audit {
    /// Short name of the policy, and its file.
    pub name: String,
    /// The file that the policy was read from.
    pub origin: Origin,
    /// What the provider stub answers; `None`: a connection to it is an attempt as any other.
    pub stub: Option<Scenario>,
    /// The name of the scenario, where the command line has one.
    pub asked_stub: Option<String>,
    /// Tiers, limits, and what of the host this program is shown.
    pub sandbox: SandboxRules,
    /// The whole environment.
    pub environment: Vec<Variable>,
    /// Attempts that are no finding.
    pub attempts: Vec<ExpectedAttempt>,
    /// Where the program lies inside.
    pub place: Place,
    /// `argv`, from 0; `{base_url}` stands for the stub's origin.
    pub arguments: Vec<OsString>,
    /// Directory that the program starts in; `None`: its home.
    pub directory: Option<PathBuf>,
}

/// Where an audited program lies inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Where it lies on the host, below a path that is shown.
    Own {
        /// Given to execve(2); perhaps a link to the file.
        path: PathBuf,
    },
    /// By itself, in the directory of the sandbox for that: nothing around it is shown.
    Alone,
}

/// The caller's surroundings, on which depends what may be shown without being asked for.
#[derive(Clone, Copy, Debug)]
pub struct Caller<'a> {
    /// The current directory.
    pub directory: Option<&'a Path>,
    /// The home.
    pub home: Option<&'a Path>,
}

/// Shows the program to itself: adds the directories that it needs to `rules`, and says where it lies. `path` is
/// the program as it was found, absolute; `file` is what it leads to, free of links.
pub fn show(path: &Path, file: &Path, rules: &mut Vec<PathRule>, caller: Caller<'_>) -> Place {
    for lies in [path, file] {
        let directory = lies.parent().unwrap_or(lies);
        if !is_shown(lies, rules) && caller.lets_show(directory) {
            rules.push(PathRule {
                path: directory.to_owned(),
                access: Access::ReadExecute,
                presence: Presence::Required,
                reason: "the program's own directory".to_owned(),
            });
        }
    }
    let place = [path, file]
        .into_iter()
        .find(|lies| is_shown(lies, rules) && is_shown(file, rules));
    match place {
        Some(path) => Place::Own { path: path.into() },
        None => Place::Alone,
    }
}

/// Whether one of the rules shows `path`.
pub fn is_shown(path: &Path, rules: &[PathRule]) -> bool {
    rules.iter().any(|rule| path.starts_with(&rule.path))
}

impl Caller<'_> {
    /// Not what holds the user's own things: the current directory, the home, and whatever they lie in.
    fn lets_show(self, directory: &Path) -> bool {
        let own = self.directory.into_iter().chain(self.home);
        may_be_shown(directory) && !own.into_iter().any(|own| own.starts_with(directory))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller() -> Caller<'static> {
        Caller {
            directory: Some(Path::new("/home/me/project/src")),
            home: Some(Path::new("/home/me")),
        }
    }

    fn system() -> Vec<PathRule> {
        vec![PathRule {
            path: "/usr".into(),
            access: Access::ReadExecute,
            presence: Presence::IfPresent,
            reason: "programs".to_owned(),
        }]
    }

    /// The place, and what was added to what the system shows.
    fn shown(path: &str, file: &str) -> (Place, Vec<PathBuf>) {
        let mut rules = system();
        let place = show(Path::new(path), Path::new(file), &mut rules, caller());
        let added = rules.into_iter().skip(1).map(|rule| rule.path);
        (place, added.collect())
    }

    fn own(path: &str) -> Place {
        Place::Own { path: path.into() }
    }

    #[test]
    fn a_program_of_the_system_needs_nothing_more() {
        let python = "/usr/bin/python3";
        assert_eq!(shown(python, "/usr/bin/python3.11"), (own(python), vec![]));
    }

    #[test]
    fn a_program_elsewhere_is_shown_with_its_directory_and_the_one_that_it_leads_to() {
        let (tool, file) = ("/opt/tool/bin/tool", "/opt/tool/lib/main");
        let added = vec!["/opt/tool/bin".into(), "/opt/tool/lib".into()];
        assert_eq!(shown(tool, file), (own(tool), added));
        let mine = "/home/me/.local/bin/tool";
        assert_eq!(
            shown(mine, mine),
            (own(mine), vec!["/home/me/.local/bin".into()])
        );
    }

    #[test]
    fn neither_home_nor_current_directory_are_shown_for_a_program_in_them() {
        for path in [
            "/home/me/tool",
            "/home/me/project/src/tool",
            "/home/me/project/tool",
            "/tool",
            "/home/tool",
        ] {
            assert_eq!(shown(path, path), (Place::Alone, vec![]), "{path}");
        }
    }

    #[test]
    fn a_link_whose_directory_cannot_be_shown_is_left_for_the_file_that_it_leads_to() {
        let file = "/opt/tool/bin/tool";
        let added = vec!["/opt/tool/bin".into()];
        assert_eq!(shown("/home/me/tool", file), (own(file), added));
        assert_eq!(
            shown("/usr/bin/tool", "/home/me/tool"),
            (Place::Alone, vec![])
        );
    }

    #[test]
    fn what_is_never_shown_is_not_shown_for_a_program_either() {
        assert_eq!(shown("/tmp/x/tool", "/tmp/x/tool"), (Place::Alone, vec![]));
    }

    #[test]
    fn what_was_asked_for_is_enough() {
        let mut rules = system();
        rules.push(PathRule {
            path: "/home/me/project".into(),
            ..system().remove(0)
        });
        let path = Path::new("/home/me/project/src/tool");
        assert_eq!(
            show(path, path, &mut rules, caller()),
            own("/home/me/project/src/tool")
        );
        assert_eq!(rules.len(), 2);
    }
}
