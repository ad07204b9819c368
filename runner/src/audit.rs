//! Audits: any program in the sandbox, without expectations.
//!
//! Decides which paths of the host an audit shows without being asked. A dynamic program needs the system's
//! directories, which the policy names, and its own directory. Any path that would show more of the user's files needs
//! an option.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use model::audit::ProgramLocation;
use model::case::{Access, PathRule, Presence};
use model::evidence::Sensitive;
use policy::may_be_shown;

use crate::home_dirs::{HomeDirs, spellings};
use crate::own_tmp::{self, Owner};

/// The caller's directories, which an audit does not show without being asked.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Caller<'a> {
    /// Current directory of the caller.
    pub directory: Option<&'a Path>,
    /// Home of the caller.
    pub home: Option<&'a Path>,
}

/// Adds the directories that the program needs to `rules`, and returns its location inside. `path` is the program's
/// absolute path as found; `file` is the same path with links resolved.
pub(crate) fn show_program(
    path: &Path,
    file: &Path,
    rules: &mut Vec<PathRule>,
    caller: Caller<'_>,
) -> ProgramLocation {
    let mut with_own = rules.clone();
    for spelling in [path, file] {
        let directory = spelling.parent().unwrap_or(spelling);
        if inside(spelling, &with_own).is_none() && caller.may_show(directory) {
            with_own.push(PathRule {
                path: directory.to_owned(),
                access: Access::ReadExecute,
                presence: Presence::Required,
                reason: "the program's own directory".to_owned(),
            });
        }
    }
    let location =
        inside(file, &with_own).map(|inside_file| inside(path, &with_own).unwrap_or(inside_file));
    match location {
        Some(path) => {
            *rules = with_own;
            ProgramLocation::Own { path }
        }
        // Drop the new rules: a directory without the program would be shown for no use.
        None => ProgramLocation::Alone,
    }
}

/// Returns the path inside of an object of the host: its own, if a rule has a spelling above it, otherwise one below a
/// rule that leads to the same directory by another name.
pub(crate) fn inside(path: &Path, rules: &[PathRule]) -> Option<PathBuf> {
    if rules.iter().any(|rule| path.starts_with(&rule.path)) {
        return Some(path.to_owned());
    }
    let identity = |path: &Path| fs::metadata(path).ok().map(|it| (it.dev(), it.ino()));
    let shown: Vec<_> = rules
        .iter()
        .filter_map(|rule| identity(&rule.path).zip(Some(rule)))
        .collect();
    path.ancestors().find_map(|above| {
        let found = identity(above)?;
        let (_, rule) = shown.iter().find(|(shown, _)| *shown == found)?;
        // Components, because joining an empty path would add a slash.
        let below = path.strip_prefix(above).ok()?.components();
        Some(rule.path.components().chain(below).collect())
    })
}

impl Caller<'_> {
    /// False for the current directory, a home, and each directory above them, by any of their names, for a place of
    /// keys, and for another user's directory below /tmp.
    fn may_show(self, directory: &Path) -> bool {
        let names = spellings(directory);
        let exists = |path: &Path| fs::symlink_metadata(path).is_ok();
        let current = self.directory.map(spellings).unwrap_or_default();
        let holds_current = |name: &PathBuf| current.iter().any(|own| own.starts_with(name));
        names.iter().all(|name| may_be_shown(name))
            && !names.iter().any(holds_current)
            && !HomeDirs::known(self.home).are_in(directory)
            && !names
                .iter()
                .any(|name| Sensitive::of_tree(name, exists).is_some())
            && names.iter().all(|name| {
                matches!(
                    own_tmp::owner(name),
                    Ok(Owner::Elsewhere | Owner::Caller(..))
                )
            })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

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

    /// Location of the program, and the paths added to those of the system.
    fn shown(path: &str, file: &str) -> (ProgramLocation, Vec<PathBuf>) {
        let mut rules = system();
        let location = show_program(Path::new(path), Path::new(file), &mut rules, caller());
        let added = rules.into_iter().skip(1).map(|rule| rule.path);
        (location, added.collect())
    }

    fn own(path: &str) -> ProgramLocation {
        ProgramLocation::Own { path: path.into() }
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
            assert_eq!(
                shown(path, path),
                (ProgramLocation::Alone, vec![]),
                "{path}"
            );
        }
    }

    #[test]
    fn a_link_whose_directory_cannot_be_shown_is_left_for_the_file_that_it_leads_to() {
        let file = "/opt/tool/bin/tool";
        let added = vec!["/opt/tool/bin".into()];
        assert_eq!(shown("/home/me/tool", file), (own(file), added));
        assert_eq!(
            shown("/usr/bin/tool", "/home/me/tool"),
            (ProgramLocation::Alone, vec![])
        );
        // The directory of the link is not shown either: the link would dangle.
        let elsewhere = shown("/opt/tool/bin/tool", "/home/me/tool");
        assert_eq!(elsewhere, (ProgramLocation::Alone, vec![]));
    }

    #[test]
    fn no_home_is_shown_for_a_program_in_it_whoever_starts_the_runner() {
        for path in ["/root/tool", "/home/other/tool"] {
            assert_eq!(
                shown(path, path),
                (ProgramLocation::Alone, vec![]),
                "{path}"
            );
        }
    }

    #[test]
    fn home_and_current_directory_are_known_by_every_name_that_leads_to_them() {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let root = directory.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        fs::create_dir_all(at("homes/me/project")).unwrap();
        fs::create_dir_all(at("opt/bin")).unwrap();
        for (target, link) in [
            ("homes", "links"),
            ("homes/me", "mine"),
            ("homes/me/project", "here"),
        ] {
            symlink(at(target), at(link)).unwrap();
        }
        let location = |path: &str, home: &str, directory: &str| {
            let mut rules = system();
            let caller = Caller {
                directory: Some(&at(directory)),
                home: Some(&at(home)),
            };
            let path = at(path);
            let file = path.parent().unwrap().canonicalize().unwrap().join("tool");
            let location = show_program(&path, &file, &mut rules, caller);
            (location, rules.len() - 1)
        };
        for (path, home, directory) in [
            ("homes/me/tool", "links/me", "opt"),
            ("homes/me/tool", "mine", "opt"),
            ("mine/tool", "homes/me", "opt"),
            ("links/me/tool", "mine", "opt"),
            ("links/tool", "mine", "opt"),
            ("homes/me/project/tool", "opt", "here"),
            ("here/tool", "opt", "homes/me/project"),
        ] {
            let found = location(path, home, directory);
            assert_eq!(
                found,
                (ProgramLocation::Alone, 0),
                "{path} {home} {directory}"
            );
        }
        let own = ProgramLocation::Own {
            path: at("opt/bin/tool"),
        };
        assert_eq!(location("opt/bin/tool", "mine", "here"), (own, 1));
    }

    #[test]
    fn what_is_never_shown_is_not_shown_for_a_program_either() {
        assert_eq!(
            shown(
                "/tmp/runner-no-such-directory/tool",
                "/tmp/runner-no-such-directory/tool"
            ),
            (ProgramLocation::Alone, vec![])
        );
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
            show_program(path, path, &mut rules, caller()),
            own("/home/me/project/src/tool")
        );
        assert_eq!(rules.len(), 2);
    }

    #[test]
    fn directory_shown_by_another_name_has_a_path_below_that_name() {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let root = directory.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        fs::create_dir_all(at("real/p/src")).unwrap();
        fs::create_dir_all(at("other")).unwrap();
        symlink(at("real"), at("link")).unwrap();
        let rule = |path: &str| PathRule {
            path: at(path),
            ..system().remove(0)
        };
        for (path, shown, expected) in [
            ("real/p", "link/p", Some("link/p")),
            ("real/p/src", "link/p", Some("link/p/src")),
            ("link/p/src", "real/p", Some("real/p/src")),
            ("real/p", "real", Some("real/p")),
            ("real/p", "real/p/src", None),
            ("other", "link/p", None),
            ("real/missing", "link/p", None),
        ] {
            let found = inside(&at(path), &[rule(shown)]);
            assert_eq!(found, expected.map(at), "{path} {shown}");
        }
    }
}
