//! Probes of the new root: they run the steps of init up to the tested one.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;

use model::layout::HOST_NAME;
use nix::errno::Errno;
use nix::mount::MsFlags;
use nix::sched::CloneFlags;
use nix::unistd::{gethostname, sethostname};
use sandbox::stage::INIT_NAMESPACES;
use sandbox::{identity, root};
use sys::mount::Seal;
use sys::process::OWN_FILE;

use super::namespaces;
use crate::doctor::trial::{Doctor, Doing as _, Observation, Outcome, in_child};

/// The last step to run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Until {
    Private,
    Sealed,
    Tmpfs,
    Proc,
    Entered,
}

/// Tests private mount propagation.
pub(in crate::doctor) fn private(doctor: &Doctor) -> Outcome {
    build(doctor, Until::Private).map(|()| "separated from the host's mounts".to_owned())
}

/// Tests open_tree(2) and mount_setattr(2) on source paths.
pub(in crate::doctor) fn sealed(doctor: &Doctor) -> Outcome {
    build(doctor, Until::Sealed).map(|()| "cloned by descriptor and made read-only".to_owned())
}

/// Tests a tmpfs, which holds the root, the home and the temporary directory.
pub(in crate::doctor) fn tmpfs(doctor: &Doctor) -> Outcome {
    build(doctor, Until::Tmpfs).map(|()| "mounted, and a directory made in it".to_owned())
}

/// Tests a new /proc. The kernel refuses it if parts of the old /proc are covered.
pub(in crate::doctor) fn proc(doctor: &Doctor) -> Outcome {
    build(doctor, Until::Proc).map(|()| "mounted, with this pid namespace only".to_owned())
}

/// Tests pivot_root(2), and that the old root is detached.
pub(in crate::doctor) fn pivot(doctor: &Doctor) -> Outcome {
    build(doctor, Until::Entered).map(|()| "entered, and the old root is detached".to_owned())
}

/// Tests a host name of the sandbox's own.
pub(in crate::doctor) fn host_name(doctor: &Doctor) -> Outcome {
    namespaces::enter(doctor, CloneFlags::CLONE_NEWUTS)?;
    sethostname(HOST_NAME).doing("set the host name")?;
    let name = gethostname().doing("ask for the host name")?;
    Ok(format!("{} inside", name.display()))
}

fn build(doctor: &Doctor, until: Until) -> Result<(), Observation> {
    let identity = namespaces::enter(doctor, CloneFlags::empty())?;
    let steps = || -> Outcome {
        root::make_private()?;
        if until == Until::Private {
            return Ok(String::new());
        }
        let own = fs::read_link(OWN_FILE).doing("ask for the path of our own file")?;
        root::take_tree("/dev/null".as_ref(), Seal::Device)?;
        root::take_tree(own.as_os_str(), Seal::Tree)?;
        if until == Until::Sealed {
            return Ok(String::new());
        }
        identity::become_inside_user(identity)?;
        let base = root::staging()?;
        root::tmpfs(base, "mode=0755,size=1m,nr_inodes=64", MsFlags::empty())?;
        let proc = base.join("proc");
        let mut directory = DirBuilder::new();
        directory
            .mode(0o755)
            .create(&proc)
            .doing("make a directory in a tmpfs")?;
        if until == Until::Proc {
            return if root::mount_proc(&proc)? {
                only_we_are_in(&proc)
            } else {
                // A run continues after this errno, and shows some files of the old /proc.
                Err(Errno::EPERM).doing("mount a fresh /proc")
            };
        }
        if until == Until::Entered {
            root::enter(base)?;
            return only_proc_is_in_the_root();
        }
        Ok(String::new())
    };
    in_child(INIT_NAMESPACES, "make the namespaces by clone", steps).map(drop)
}

/// Checks that a new /proc shows only this process, with pid 1.
fn only_we_are_in(proc: &std::path::Path) -> Outcome {
    let listed = fs::read_dir(proc).doing("list the fresh /proc")?;
    let processes: Vec<i32> = listed
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    if processes == [1] {
        return Ok(String::new());
    }
    Err(Observation::Wrong(format!(
        "the fresh /proc shows the processes {processes:?}"
    )))
}

fn only_proc_is_in_the_root() -> Outcome {
    let listed = fs::read_dir("/").doing("list the new root")?;
    let names: Vec<_> = listed
        .filter_map(|entry| Some(entry.ok()?.file_name()))
        .collect();
    if names == ["proc"] {
        return Ok(String::new());
    }
    Err(Observation::Wrong(format!("the new root holds {names:?}")))
}
