//! Home directories of this host, which a run shows only if the user names them.
//!
//! Owns the paths of home directories and their spellings. Must not know which paths a run shows.

use std::fs;
use std::path::{Path, PathBuf};

use nix::unistd::Uid;
use sys::read;

/// Parent of the users' home directories.
const PARENT: &str = "/home";
/// Placeholder home directories of system accounts in /etc/passwd.
const PLACEHOLDERS: [&str; 6] = ["/", "/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/games"];

/// Known home directories, each by its name and by its path without links.
#[derive(Clone, Debug)]
pub(crate) struct HomeDirs(Vec<PathBuf>);

impl HomeDirs {
    /// Collects root's home, `home` (the value of HOME), and the caller's home in /etc/passwd.
    pub(crate) fn known(home: Option<&Path>) -> Self {
        let users = read::system_text("/etc/passwd");
        let of_user = home_of(&users, Uid::current().as_raw());
        let named = home.map(Path::to_owned);
        let all = [Some("/root".into()), named, of_user].into_iter().flatten();
        Self(
            all.filter(|home| {
                home.is_absolute() && !PLACEHOLDERS.iter().any(|other| home == Path::new(other))
            })
            .flat_map(|home| spellings(&home))
            .collect(),
        )
    }

    /// Collects the homes that HOME and /etc/passwd name.
    pub(crate) fn of_caller() -> Self {
        Self::known(std::env::var_os("HOME").as_deref().map(Path::new))
    }

    /// True if `path`, or its target, is a home directory or a directory above one.
    pub(crate) fn are_in(&self, path: &Path) -> bool {
        let parents = spellings(Path::new(PARENT));
        spellings(path).iter().any(|path| {
            self.0
                .iter()
                .chain(&parents)
                .any(|home| home.starts_with(path))
                || parents
                    .iter()
                    .any(|parent| path.parent() == Some(parent.as_path()))
        })
    }

    /// True if `path` is the name of a home directory. A link to one has another name.
    pub(crate) fn has_name(&self, path: &Path) -> bool {
        self.0.iter().any(|home| home == path) || path.parent() == Some(Path::new(PARENT))
    }
}

/// `path` as given, and its path without links if it exists.
pub(crate) fn spellings(path: &Path) -> Vec<PathBuf> {
    let mut all = vec![path.to_owned()];
    all.extend(fs::canonicalize(path).ok().filter(|found| found != path));
    all
}

/// Finds the home of `uid` in the text of passwd(5). The functions of a static libc would ask other programs.
fn home_of(users: &str, uid: u32) -> Option<PathBuf> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':').skip(2);
        let is_uid = fields.next()?.parse() == Ok(uid);
        fields.nth(2).filter(|_| is_uid).map(PathBuf::from)
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_home_is_found_by_its_user_in_the_list_of_users() {
        let users = "root:x:0:0::/root:/bin/sh\nbroken\nme:x:1000:1000:Me,,:/data/me:/bin/sh\n";
        assert_eq!(home_of(users, 1000), Some("/data/me".into()));
        assert_eq!(home_of(users, 1001), None);
    }

    #[test]
    fn a_home_and_what_lies_above_it_are_known_by_whatever_name_and_what_lies_in_it_is_not_one() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir_all(at("homes/me/bin")).unwrap();
        symlink(at("homes/me"), at("mine")).unwrap();
        symlink(at("homes"), at("all")).unwrap();
        symlink("/", at("everything")).unwrap();
        for home in [at("homes/me"), at("mine")] {
            let homes = HomeDirs::known(Some(&home));
            for name in ["homes/me", "mine", "homes", "all", "all/me", "everything"] {
                assert!(homes.are_in(&at(name)), "{name}");
            }
            for name in ["homes/me/bin", "mine/bin"] {
                assert!(!homes.are_in(&at(name)), "{name}");
            }
            assert!(homes.has_name(&home) && !homes.has_name(&at("all/me")));
        }
    }

    #[test]
    fn every_directory_in_home_is_one_and_so_is_roots() {
        let homes = HomeDirs::known(None);
        for path in ["/", "/home", "/home/somebody", "/root"] {
            assert!(homes.are_in(Path::new(path)), "{path}");
        }
        for path in ["/usr", "/home/somebody/bin", "/root/bin"] {
            assert!(!homes.are_in(Path::new(path)), "{path}");
        }
    }
}
