//! Overlapping rules: objects that one rule makes writable and another shows read-only.
//!
//! The program must not execute objects that it can write, and read-only objects must not change. So no object may
//! be writable by one name and read-only by another. A read-only object in a writable directory must also keep its
//! place. The kernel neither renames nor removes mount points, so each directory between the two is mounted on
//! itself.

use std::fs::File;
use std::path::{Path, PathBuf};

use model::case::{Access, Tier};
use model::quote::shown_path;
use sandbox::plan::Bind;

use super::PrepareError;
use super::binds::Object;

/// Rejects rules that contradict each other, and adds binds to `binds` that keep the others in their places.
/// Returns the handles of the added objects, which the caller must hold.
pub(super) fn settle(binds: &mut Vec<Bind>, tier: Tier) -> Result<Vec<File>, PrepareError> {
    let (writable, kept): (Vec<&Bind>, Vec<&Bind>) =
        binds.iter().partition(|bind| bind.access == Access::Write);
    for write in &writable {
        if let Some(other) = kept.iter().find(|other| contradict(write, other, tier)) {
            return Err(PrepareError::Contradiction {
                writable: shown(&write.target),
                other: shown(&other.target),
                same: shown(deeper(&write.source, &other.source)),
            });
        }
    }
    let between: Vec<PathBuf> = kept
        .iter()
        .flat_map(|bind| {
            let target = Path::new(&bind.target);
            writable.iter().flat_map(move |write| {
                let above = Path::new(&write.target);
                let is_inside = move |mount_point: &&Path| {
                    *mount_point != above && mount_point.starts_with(above)
                };
                target.ancestors().filter(is_inside).map(Path::to_owned)
            })
        })
        .collect();
    let mut held = Vec::new();
    // A directory precedes its content, because its bind governs the content.
    let mut between = between;
    between.sort();
    between.dedup();
    for mount_point in between {
        held.extend(keep_in_place(&mount_point, binds)?);
    }
    Ok(held)
}

/// Checks whether `other` also shows an object that `write` makes writable, and does not cover it there.
fn contradict(write: &Bind, other: &Bind, tier: Tier) -> bool {
    let paths = |bind: &Bind| (PathBuf::from(&bind.source), PathBuf::from(&bind.target));
    let ((write_source, write_target), (source, target)) = (paths(write), paths(other));
    let (meets, is_covered) = match source.strip_prefix(&write_source) {
        Ok(within) => {
            let is_below = !within.as_os_str().is_empty();
            (true, is_below && target == write_target.join(within))
        }
        Err(_) => match write_source.strip_prefix(&source) {
            Ok(within) => (true, write_target == target.join(within)),
            Err(_) => (false, false),
        },
    };
    // Without mounts no rule covers another one, and permissions add up.
    meets && (!is_covered || tier == Tier::Inherited)
}

/// Mounts the object at `mount_point`, in a writable directory, on itself, so that it keeps its place.
fn keep_in_place(mount_point: &Path, binds: &mut Vec<Bind>) -> Result<Option<File>, PrepareError> {
    let governing = binds
        .iter()
        .filter(|bind| mount_point.starts_with(&bind.target))
        .max_by_key(|bind| bind.target.len());
    let named = mount_point.parent().zip(mount_point.file_name());
    let above = |path: &Path| {
        let above = binds.iter().filter(|bind| path.starts_with(&bind.target));
        above.max_by_key(|bind| bind.target.len())
    };
    let Some((governing, (parent, _))) = governing.zip(named) else {
        return Ok(None);
    };
    // A program that can write the parent directory could replace the object.
    let Some(writable) = above(parent).filter(|bind| bind.access == Access::Write) else {
        return Ok(None);
    };
    let within = mount_point
        .strip_prefix(&writable.target)
        .unwrap_or(mount_point);
    let expected = Path::new(&writable.source).join(within);
    let object = Object::open(&expected).map_err(|source| PrepareError::Rule {
        path: shown_path(mount_point),
        source,
    })?;
    let is_shown = governing.target == mount_point.as_os_str();
    let real = if is_shown {
        Path::new(&governing.source)
    } else {
        &object.path
    };
    if real != expected || object.path != expected {
        return Err(PrepareError::BehindLink {
            path: shown_path(mount_point),
            writable: shown(&writable.target),
            real: shown_path(real),
        });
    }
    if is_shown {
        return Ok(None);
    }
    let bind = object.bind(mount_point, Access::Write);
    binds.push(bind);
    Ok(Some(object.handle))
}

fn deeper<'p>(
    one: &'p std::ffi::OsString,
    other: &'p std::ffi::OsString,
) -> &'p std::ffi::OsString {
    if Path::new(one).starts_with(other) {
        one
    } else {
        other
    }
}

fn shown(path: &std::ffi::OsStr) -> String {
    shown_path(Path::new(path))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use sandbox::plan::BindKind;

    use super::*;

    fn bind(source: impl AsRef<Path>, target: impl AsRef<Path>, access: Access) -> Bind {
        Bind {
            source: source.as_ref().into(),
            target: target.as_ref().into(),
            device: 0,
            inode: 0,
            kind: BindKind::Directory,
            access,
        }
    }

    /// Settles a writable directory and another rule.
    fn settled(
        write: (&str, &str),
        other: (&str, &str),
        tier: Tier,
    ) -> Result<Vec<File>, PrepareError> {
        let mut binds = vec![
            bind(write.0, write.1, Access::Write),
            bind(other.0, other.1, Access::ReadExecute),
        ];
        settle(&mut binds, tier)
    }

    #[test]
    fn what_is_writable_by_one_name_is_not_shown_by_another() {
        let own = |path| (path, path);
        for (write, other) in [
            (("/opt", "/wl"), ("/opt/bin", "/opt/bin")),
            (("/opt", "/wl"), own("/opt")),
            (own("/usr/bin"), ("/usr/bin", "/bin")),
            (own("/usr/bin/x"), ("/usr/bin", "/bin")),
            (own("/opt"), ("/opt/tool", "/client/tool")),
            (own("/opt"), own("/opt")),
        ] {
            let error = settled(write, other, Tier::Namespace).unwrap_err();
            let PrepareError::Contradiction {
                writable,
                other: second,
                ..
            } = &error
            else {
                panic!("{error}")
            };
            assert_eq!((writable.as_str(), second.as_str()), (write.1, other.1));
        }
        for (write, other) in [
            (own("/opt/out"), own("/opt")),
            (own("/opt"), own("/optional")),
            (own("/opt/a"), own("/opt/b")),
            (("/opt/out", "/x/out"), ("/opt", "/x")),
        ] {
            settled(write, other, Tier::Namespace).unwrap();
        }
    }

    #[test]
    fn where_nothing_is_mounted_no_rule_lies_within_another() {
        let (outer, inner) = (("/opt", "/opt"), ("/opt/out", "/opt/out"));
        for (write, other) in [(inner, outer), (outer, inner)] {
            let error = settled(write, other, Tier::Inherited).unwrap_err();
            assert!(
                matches!(error, PrepareError::Contradiction { .. }),
                "{error}"
            );
        }
        settled(inner, ("/usr", "/usr"), Tier::Inherited).unwrap();
    }

    #[test]
    fn the_way_to_what_is_kept_in_a_writable_directory_is_kept_in_its_place() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("a/b/c/d")).unwrap();
        let inner = |path: &str| bind(root.join(path), root.join(path), Access::ReadExecute);
        let added = |others: &[Bind]| {
            let mut binds = vec![bind(&root, &root, Access::Write)];
            binds.extend_from_slice(others);
            let before = binds.len();
            let held = settle(&mut binds, Tier::Namespace).unwrap();
            let added = binds.split_off(before);
            assert_eq!(held.len(), added.len());
            assert!(
                added
                    .iter()
                    .all(|bind| bind.access == Access::Write && bind.source == bind.target)
            );
            let names = added.iter().map(|bind| {
                let name = Path::new(&bind.target).strip_prefix(&root).unwrap();
                name.to_str().unwrap().to_owned()
            });
            names.collect::<Vec<_>>()
        };
        assert_eq!(added(&[inner("a")]), [""; 0]);
        assert_eq!(added(&[inner("a/b")]), ["a"]);
        assert_eq!(added(&[inner("a/b/c/d")]), ["a", "a/b", "a/b/c"]);
        // An object in a read-only directory keeps its place without a mount.
        assert_eq!(added(&[inner("a/b"), inner("a/b/c/d")]), ["a"]);
    }

    #[test]
    fn what_lies_behind_a_link_that_the_program_could_replace_is_refused_with_its_own_name() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("w/releases/1/conf")).unwrap();
        fs::create_dir(root.join("elsewhere")).unwrap();
        symlink(root.join("w/releases/1"), root.join("w/current")).unwrap();
        symlink(root.join("elsewhere"), root.join("w/link")).unwrap();
        for (named, real) in [
            ("w/current/conf", "w/releases/1"),
            ("w/current", "w/releases/1"),
            ("w/link", "elsewhere"),
        ] {
            let target = root.join(named);
            let mut binds = vec![
                bind(root.join("w"), root.join("w"), Access::Write),
                bind(target.canonicalize().unwrap(), &target, Access::ReadExecute),
            ];
            match settle(&mut binds, Tier::Namespace) {
                Err(PrepareError::BehindLink { real: reported, .. }) => {
                    assert_eq!(reported, root.join(real).to_str().unwrap());
                }
                // The object's own path is writable as well.
                Err(PrepareError::Contradiction { same, .. }) => {
                    assert!(
                        same.starts_with(root.join(real).to_str().unwrap()),
                        "{same}"
                    );
                }
                Err(error) => panic!("{named}: {error}"),
                Ok(_) => panic!("{named} is settled"),
            }
        }
    }
}
