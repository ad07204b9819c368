//! Where a path leads, inside and on the host.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use model::case::{Access, Device};
use model::evidence::Reason;
use model::layout::{HOME, PROGRAM_DIRECTORY, TMP, WORK};
use sandbox::plan::Bind;
use sandbox::root::{DEVICE_LINKS, etc_files};

use super::{HostObject, never};
use crate::audit::Caller;
use crate::prepare::binds::FORBIDDEN;

/// Symbolic links that are followed on one way, MAXSYMLINKS of linux/namei.h.
const MOST_LINKS: usize = 40;
/// What the host was asked and answered is remembered, up to as many bytes of paths.
const KNOWN_BYTES: usize = 16 << 20;
/// Parts of the new root that are its own, as far as they are directories.
const OWN_TREES: [&str; 7] = [HOME, TMP, WORK, PROGRAM_DIRECTORY, "/etc", "/dev", "/proc"];

/// What would show a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    Read,
    Write,
    Never(Reason),
}

/// The host, and what of it is shown where.
pub(super) struct MountView<'a> {
    trees: Vec<Tree>,
    /// Files and links that the new root has by itself.
    own_files: Vec<PathBuf>,
    /// HomeDirs that are known by name; every directory in /home is another one.
    homes: Vec<PathBuf>,
    /// The caller's directory, where it is not shown and could be.
    left_behind: Option<PathBuf>,
    probe: &'a dyn Fn(&Path) -> Option<HostObject>,
    known: RefCell<Known>,
}

/// Answers of the host.
#[derive(Default)]
struct Known {
    answers: HashMap<PathBuf, Option<HostObject>>,
    bytes: usize,
}

/// One object of the host that is shown.
struct Tree {
    source: PathBuf,
    target: PathBuf,
    writable: bool,
}

/// Where a way inside ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    There(Found),
    /// Not there, in a directory that is shown.
    Missing {
        writable: bool,
    },
    /// This path is not shown: as much of it as was followed, and the rest as it stood.
    Hidden(PathBuf),
    /// Neither there nor to be made: a directory of it is missing, or none, or the links go round.
    Nothing,
}

/// An object at the end of a way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Its path without links.
    pub(super) path: PathBuf,
    pub(super) object: HostObject,
    pub(super) writable: bool,
}

/// What lies at one path, no link of which is left but the last name.
enum Visible {
    /// The sandbox's own, whatever it is there.
    Own {
        writable: bool,
    },
    /// A directory that leads to what is shown.
    Way,
    Host {
        path: PathBuf,
        writable: bool,
    },
    Nowhere,
}

impl<'a> MountView<'a> {
    pub(super) fn new(
        binds: &[Bind],
        caller: Caller<'_>,
        probe: &'a dyn Fn(&Path) -> Option<HostObject>,
    ) -> Self {
        let trees = binds.iter().map(|bind| Tree {
            source: PathBuf::from(&bind.source),
            target: PathBuf::from(&bind.target),
            writable: bind.access == Access::Write,
        });
        let etc = etc_files().map(|(name, _)| Path::new("/etc").join(name));
        let devices = Device::ALL
            .map(Device::word)
            .into_iter()
            .chain(DEVICE_LINKS.map(|(name, _)| name));
        let devices = devices.map(|name| Path::new("/dev").join(name));
        let mut world = Self {
            trees: trees.collect(),
            own_files: etc.into_iter().chain(devices).collect(),
            homes: vec![PathBuf::from("/root")],
            left_behind: None,
            probe,
            known: RefCell::default(),
        };
        if let Some(home) = caller.home {
            let found = world.on_host(home).map(|found| found.path);
            world
                .homes
                .extend(found.into_iter().chain([home.to_owned()]));
        }
        let may_be_shown = |path: &&Path| world.class(path, Class::Read) == Class::Read;
        world.left_behind = caller.directory.filter(may_be_shown).map(Path::to_owned);
        world
    }

    pub(super) fn left_behind(&self) -> Option<&Path> {
        self.left_behind.as_deref()
    }

    /// Follows `path`, which is absolute, as the program would.
    pub(super) fn inside(&self, path: &Path) -> Seen {
        self.follow(path, &|path| self.place(path))
    }

    /// What `path` is on the host, links followed.
    pub(super) fn on_host(&self, path: &Path) -> Option<Found> {
        let host = |path: &Path| Visible::Host {
            path: path.to_owned(),
            writable: false,
        };
        match self.follow(path, &host) {
            Seen::There(found) => Some(found),
            Seen::Missing { .. } | Seen::Hidden(_) | Seen::Nothing => None,
        }
    }

    pub(super) fn is_directory_on_host(&self, path: &Path) -> bool {
        self.on_host(path)
            .is_some_and(|found| found.object == HostObject::Directory)
    }

    /// `wanted`, or why `path` is never shown.
    pub(super) fn class(&self, path: &Path, wanted: Class) -> Class {
        match self.on_host(path) {
            Some(found) => {
                never(self, path, &found.path, &found.object).map_or(wanted, Class::Never)
            }
            None if is_system(path) => Class::Never(Reason::System),
            None => Class::Never(Reason::Own),
        }
    }

    /// The sandbox has something of its own at this very path, or the program lies there.
    pub(super) fn is_own(&self, path: &Path) -> bool {
        self.own_files.iter().any(|own| own == path) || path.starts_with(PROGRAM_DIRECTORY)
    }

    /// The root, a home, a tree of the sandbox's own, or a directory above one of these: no option shows it whole.
    pub(super) fn is_broad(&self, path: &Path) -> bool {
        let own = OWN_TREES.into_iter().map(Path::new);
        let mut kept = self.homes.iter().map(PathBuf::as_path).chain(own);
        path.parent() == Some(Path::new("/home")) || kept.any(|kept| kept.starts_with(path))
    }

    fn place(&self, path: &Path) -> Visible {
        let shown = self
            .trees
            .iter()
            .filter(|tree| path.starts_with(&tree.target));
        if let Some(tree) = shown.max_by_key(|tree| tree.target.as_os_str().len()) {
            return Visible::Host {
                path: tree.on_host(path),
                writable: tree.writable,
            };
        }
        let below = |tree: &str| path.starts_with(tree);
        let leads_to = |shown: &Path| shown.starts_with(path);
        let is_way = OWN_TREES.into_iter().map(Path::new).any(leads_to)
            || self.trees.iter().any(|tree| leads_to(&tree.target));
        match () {
            () if below(HOME) || below(TMP) || below(WORK) => Visible::Own { writable: true },
            () if below("/proc") => Visible::Own { writable: false },
            () if self.own_files.iter().any(|own| own == path) => Visible::Own {
                writable: below("/dev"),
            },
            () if is_way => Visible::Way,
            () => Visible::Nowhere,
        }
    }

    fn follow(&self, path: &Path, place: &dyn Fn(&Path) -> Visible) -> Seen {
        let mut at = PathBuf::from("/");
        let mut found = Found {
            path: at.clone(),
            object: HostObject::Directory,
            writable: false,
        };
        // The next name is the last of these.
        let mut rest = names(path);
        let mut links = 0;
        while let Some(name) = rest.pop() {
            if name == ".." {
                at.pop();
                continue;
            }
            let next = at.join(&name);
            let (object, writable) = match place(&next) {
                Visible::Nowhere => return Seen::Hidden(with_rest(next, rest)),
                Visible::Own { writable } => {
                    let object = HostObject::File;
                    return Seen::There(Found {
                        path: next,
                        object,
                        writable,
                    });
                }
                Visible::Way => (HostObject::Directory, false),
                Visible::Host { path, writable } => match self.ask(&path) {
                    Some(object) => (object, writable),
                    None if rest.is_empty() => return Seen::Missing { writable },
                    None => return Seen::Nothing,
                },
            };
            match object {
                HostObject::Link(target) => {
                    links += 1;
                    if links > MOST_LINKS {
                        return Seen::Nothing;
                    }
                    if target.is_absolute() {
                        at = PathBuf::from("/");
                    }
                    rest.extend(names(&target));
                    continue;
                }
                HostObject::File | HostObject::Closed if !rest.is_empty() => return Seen::Nothing,
                HostObject::File | HostObject::Closed | HostObject::Directory => {}
            }
            at.clone_from(&next);
            found = Found {
                path: next,
                object,
                writable,
            };
        }
        if found.path != at {
            // A way that ends with `..` ends at a directory.
            found.object = HostObject::Directory;
            found.path = at;
        }
        Seen::There(found)
    }

    fn ask(&self, path: &Path) -> Option<HostObject> {
        if let Some(known) = self.known.borrow().answers.get(path) {
            return known.clone();
        }
        let object = (self.probe)(path);
        self.known.borrow_mut().keep(path, &object);
        object
    }
}

impl Known {
    /// Keeps an answer while there is room; what is not kept is asked again.
    fn keep(&mut self, path: &Path, object: &Option<HostObject>) {
        let target = match object {
            Some(HostObject::Link(target)) => target.as_os_str().len(),
            _ => 0,
        };
        let bytes = self.bytes + path.as_os_str().len() + target;
        if bytes <= KNOWN_BYTES {
            self.bytes = bytes;
            self.answers.insert(path.to_owned(), object.clone());
        }
    }
}

impl Tree {
    fn on_host(&self, path: &Path) -> PathBuf {
        match path.strip_prefix(&self.target) {
            Ok(rest) if !rest.as_os_str().is_empty() => self.source.join(rest),
            Ok(_) | Err(_) => self.source.clone(),
        }
    }
}

/// Whether no rule may lead there, see [`FORBIDDEN`]; /var/run is an older name for /run.
pub(super) fn is_system(path: &Path) -> bool {
    FORBIDDEN
        .into_iter()
        .chain(["/var/run"])
        .any(|tree| path.starts_with(tree))
}

/// The names of a path, the first one last.
fn names(path: &Path) -> Vec<OsString> {
    let names = path
        .components()
        .rev()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some("..".into()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        });
    names.collect()
}

/// `path` and the names behind it, the first one last. What is not shown is not followed: `..` by the text.
fn with_rest(mut path: PathBuf, rest: Vec<OsString>) -> PathBuf {
    for name in rest.into_iter().rev() {
        if name == ".." {
            path.pop();
        } else {
            path.push(name);
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_of_the_host_is_bounded_by_its_bytes() {
        let mut known = Known::default();
        let long = "x".repeat(4000);
        for number in 0..5000 {
            let path = PathBuf::from(format!("/{number:04}{long}"));
            known.keep(&path, &Some(HostObject::Link("y".repeat(95).into())));
        }
        assert_eq!(known.answers.len(), KNOWN_BYTES / 4100);
        assert!(known.bytes <= KNOWN_BYTES);
    }
}
