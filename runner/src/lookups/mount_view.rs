//! Resolution of paths, inside the sandbox and on the host.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use model::case::{Access, Device};
use model::evidence::Reason;
use model::layout::{HOME, PROGRAM_DIRECTORY, TMP, WORK};
use sandbox::plan::Bind;
use sandbox::root::{DEVICE_LINKS, etc_files};

use super::{HostObject, never_shown};
use crate::audit::Caller;
use crate::prepare::binds::FORBIDDEN;

/// Largest number of symbolic links on one path (MAXSYMLINKS of linux/namei.h).
const MAX_LINKS: usize = 40;
/// Limit on the cache of probes, in bytes of paths.
const CACHE_BYTES: usize = 16 << 20;
/// Directories of the new root that are the sandbox's own.
const OWN_TREES: [&str; 7] = [HOME, TMP, WORK, PROGRAM_DIRECTORY, "/etc", "/dev", "/proc"];

/// Option that would show a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    Read,
    Write,
    Never(Reason),
}

/// View of the host, and of its shown parts inside.
pub(super) struct MountView<'a> {
    trees: Vec<ShownTree>,
    /// Files and links of the new root that are the sandbox's own.
    own_files: Vec<PathBuf>,
    /// Home directories known by name; every other directory in /home is a home as well.
    home_dirs: Vec<PathBuf>,
    /// The caller's directory, if it is not shown but could be.
    caller_directory: Option<PathBuf>,
    probe: &'a dyn Fn(&Path) -> Option<HostObject>,
    cache: RefCell<ProbeCache>,
}

/// Cached probes of the host.
#[derive(Default)]
struct ProbeCache {
    answers: HashMap<PathBuf, Option<HostObject>>,
    bytes: usize,
}

/// One object of the host that is shown.
struct ShownTree {
    source: PathBuf,
    target: PathBuf,
    writable: bool,
}

/// Result of resolving a path inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Resolved {
    There(Found),
    /// The object does not exist, but its directory is shown.
    Missing {
        writable: bool,
    },
    /// The path is not shown: the resolved part, then the remaining names unchanged.
    Hidden(PathBuf),
    /// The object neither exists nor can be created: a parent is missing or not a directory, or the links form
    /// a loop.
    Nothing,
}

/// Object at the end of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Path without links.
    pub(super) path: PathBuf,
    pub(super) object: HostObject,
    pub(super) writable: bool,
}

/// Object at one path without links, except possibly the last name.
enum Visible {
    /// Belongs to the sandbox; its kind is not known here.
    Own {
        writable: bool,
    },
    /// Directory above a shown object.
    Parent,
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
        let trees = binds.iter().map(|bind| ShownTree {
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
        let mut view = Self {
            trees: trees.collect(),
            own_files: etc.into_iter().chain(devices).collect(),
            home_dirs: vec![PathBuf::from("/root")],
            caller_directory: None,
            probe,
            cache: RefCell::default(),
        };
        if let Some(home) = caller.home {
            let found = view.on_host(home).map(|found| found.path);
            view.home_dirs
                .extend(found.into_iter().chain([home.to_owned()]));
        }
        let may_be_shown = |path: &&Path| view.class(path, Class::Read) == Class::Read;
        view.caller_directory = caller.directory.filter(may_be_shown).map(Path::to_owned);
        view
    }

    pub(super) fn caller_directory(&self) -> Option<&Path> {
        self.caller_directory.as_deref()
    }

    /// Resolves the absolute `path` as the program would.
    pub(super) fn inside(&self, path: &Path) -> Resolved {
        self.follow(path, &|path| self.visible(path))
    }

    /// Resolves `path` on the host, links followed.
    pub(super) fn on_host(&self, path: &Path) -> Option<Found> {
        let host = |path: &Path| Visible::Host {
            path: path.to_owned(),
            writable: false,
        };
        match self.follow(path, &host) {
            Resolved::There(found) => Some(found),
            Resolved::Missing { .. } | Resolved::Hidden(_) | Resolved::Nothing => None,
        }
    }

    /// Checks for a path of the host below a shown one.
    pub(super) fn is_shown(&self, path: &Path) -> bool {
        self.trees.iter().any(|tree| path.starts_with(&tree.target))
    }

    pub(super) fn is_directory_on_host(&self, path: &Path) -> bool {
        self.on_host(path)
            .is_some_and(|found| found.object == HostObject::Directory)
    }

    /// Returns `wanted`, or the reason why `path` is never shown.
    pub(super) fn class(&self, path: &Path, wanted: Class) -> Class {
        match self.on_host(path) {
            Some(found) => {
                never_shown(self, path, &found.path, &found.object).map_or(wanted, Class::Never)
            }
            None if is_system(path) => Class::Never(Reason::System),
            None => Class::Never(Reason::Own),
        }
    }

    /// Checks whether the sandbox has an object of its own at this path, or the program is there.
    pub(super) fn is_own(&self, path: &Path) -> bool {
        self.own_files.iter().any(|own| own == path) || path.starts_with(PROGRAM_DIRECTORY)
    }

    /// Checks for the root, a home, a tree of the sandbox's own, or a directory above one. No option shows
    /// these whole.
    pub(super) fn is_broad(&self, path: &Path) -> bool {
        let own = OWN_TREES.into_iter().map(Path::new);
        let mut kept = self.home_dirs.iter().map(PathBuf::as_path).chain(own);
        path.parent() == Some(Path::new("/home")) || kept.any(|kept| kept.starts_with(path))
    }

    /// Checks for a path below a home.
    pub(super) fn is_in_home(&self, path: &Path) -> bool {
        let mut homes = self.home_dirs.iter().map(PathBuf::as_path);
        path.starts_with("/home") || homes.any(|home| path.starts_with(home))
    }

    fn visible(&self, path: &Path) -> Visible {
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
        let is_parent = OWN_TREES.into_iter().map(Path::new).any(leads_to)
            || self.trees.iter().any(|tree| leads_to(&tree.target));
        match () {
            () if below(HOME) || below(TMP) || below(WORK) => Visible::Own { writable: true },
            () if below("/proc") => Visible::Own { writable: false },
            () if self.own_files.iter().any(|own| own == path) => Visible::Own {
                writable: below("/dev"),
            },
            () if is_parent => Visible::Parent,
            () => Visible::Nowhere,
        }
    }

    fn follow(&self, path: &Path, visible: &dyn Fn(&Path) -> Visible) -> Resolved {
        let mut at = PathBuf::from("/");
        let mut found = Found {
            path: at.clone(),
            object: HostObject::Directory,
            writable: false,
        };
        // The next name is the last element.
        let mut rest = names(path);
        let mut links = 0;
        while let Some(name) = rest.pop() {
            if name == ".." {
                at.pop();
                continue;
            }
            let next = at.join(&name);
            let (object, writable) = match visible(&next) {
                Visible::Nowhere => return Resolved::Hidden(with_rest(next, rest)),
                Visible::Own { writable } => {
                    let object = HostObject::File;
                    return Resolved::There(Found {
                        path: next,
                        object,
                        writable,
                    });
                }
                Visible::Parent => (HostObject::Directory, false),
                Visible::Host { path, writable } => match self.cached_probe(&path) {
                    Some(object) => (object, writable),
                    None if rest.is_empty() => return Resolved::Missing { writable },
                    None => return Resolved::Nothing,
                },
            };
            match object {
                HostObject::Link(target) => {
                    links += 1;
                    if links > MAX_LINKS {
                        return Resolved::Nothing;
                    }
                    if target.is_absolute() {
                        at = PathBuf::from("/");
                    }
                    rest.extend(names(&target));
                    continue;
                }
                HostObject::File | HostObject::Closed if !rest.is_empty() => {
                    return Resolved::Nothing;
                }
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
            // A path that ends with `..` ends at a directory.
            found.object = HostObject::Directory;
            found.path = at;
        }
        Resolved::There(found)
    }

    fn cached_probe(&self, path: &Path) -> Option<HostObject> {
        if let Some(cached) = self.cache.borrow().answers.get(path) {
            return cached.clone();
        }
        let object = (self.probe)(path);
        self.cache.borrow_mut().keep(path, &object);
        object
    }
}

impl ProbeCache {
    /// Caches a probe while there is space; other paths are probed again.
    fn keep(&mut self, path: &Path, object: &Option<HostObject>) {
        let target = match object {
            Some(HostObject::Link(target)) => target.as_os_str().len(),
            _ => 0,
        };
        let bytes = self.bytes + path.as_os_str().len() + target;
        if bytes <= CACHE_BYTES {
            self.bytes = bytes;
            self.answers.insert(path.to_owned(), object.clone());
        }
    }
}

impl ShownTree {
    fn on_host(&self, path: &Path) -> PathBuf {
        match path.strip_prefix(&self.target) {
            Ok(rest) if !rest.as_os_str().is_empty() => self.source.join(rest),
            Ok(_) | Err(_) => self.source.clone(),
        }
    }
}

/// Checks for the trees in [`FORBIDDEN`] and for /var/run, an older name of /run.
pub(super) fn is_system(path: &Path) -> bool {
    FORBIDDEN
        .into_iter()
        .chain(["/var/run"])
        .any(|tree| path.starts_with(tree))
}

/// Returns the names of a path in reverse order.
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

/// Appends the names of `rest`, which are in reverse order. Hidden paths are not resolved, so `..` only drops a
/// name.
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
        let mut cache = ProbeCache::default();
        let long = "x".repeat(4000);
        for number in 0..5000 {
            let path = PathBuf::from(format!("/{number:04}{long}"));
            cache.keep(&path, &Some(HostObject::Link("y".repeat(95).into())));
        }
        assert_eq!(cache.answers.len(), CACHE_BYTES / 4100);
        assert!(cache.bytes <= CACHE_BYTES);
    }
}
