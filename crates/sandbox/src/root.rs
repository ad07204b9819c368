//! The new root of the client: a tmpfs with only those host paths that the plan names.
//!
//! Two steps, with a change of user in between. Before the change init takes the sources as detached mounts, while it
//! may still read them. After the change init mounts the file systems: a tmpfs whose root has an unmapped owner refuses
//! every mkdir with EOVERFLOW.

mod devices;

use std::ffi::{CString, OsStr};
use std::fs::{self, DirBuilder};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use model::case::{Access, Device, Root, Tier};
use model::layout::{HOME, HOST_NAME, INSIDE_ID, TMP, WORK};
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::stat::{Mode, fstat};
use nix::unistd::{chdir, pivot_root, sethostname};
use sys::marks;
use sys::mount::{Seal, attach, make_private as make_tree_private, open_tree, seal};

use self::devices::{device_path, make_devices, mount_terminals, remove_device, standard_input};
use super::error::{At as _, SetupError, Step};
use super::mount_point;
use super::plan::{Bind, BindKind, Plan, RootPlan, UNRULED_FILE};
use super::proc::{HARMLESS, Proc};
use super::weaken::Protection;

pub use self::devices::DEVICE_LINKS;

/// Candidates for the temporary mount point of the new root; the first that exists is used.
///
/// The mount may hide any files, because the sources have been taken by then. But the list leaves out /proc: a fresh
/// procfs can be mounted only while the old one is fully visible.
const STAGING: [&str; 7] = ["/tmp", "/mnt", "/var", "/opt", "/usr", "/etc", "/sys"];

/// Largest number of mounts that the runner opens for init.
const MAX_CARRIED: usize = 24;

/// A detached mount and its target.
pub(super) struct Source {
    tree: OwnedFd,
    target: PathBuf,
    kind: BindKind,
}

/// Descriptors of the client's writable trees, which the runner walks after the end of all processes.
#[derive(Debug)]
pub struct Trees {
    /// Home directory.
    pub home: OwnedFd,
    tmp: OwnedFd,
    work: OwnedFd,
}

impl Trees {
    /// Takes three descriptors in the order of [`Self::each`]; `None` if one is missing.
    pub fn from_each(mut descriptors: impl Iterator<Item = OwnedFd>) -> Option<Self> {
        Some(Self {
            home: descriptors.next()?,
            tmp: descriptors.next()?,
            work: descriptors.next()?,
        })
    }

    /// Lists the trees: home, temporary and working directory.
    pub fn each(&self) -> [(Root, &OwnedFd); 3] {
        let Self { home, tmp, work } = self;
        [(Root::Home, home), (Root::Tmp, tmp), (Root::Work, work)]
    }

    /// Returns the descriptors in the order of [`Self::each`].
    pub fn into_each(self) -> [(Root, OwnedFd); 3] {
        let Self { home, tmp, work } = self;
        [(Root::Home, home), (Root::Tmp, tmp), (Root::Work, work)]
    }

    /// Duplicates the descriptors.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            home: self.home.try_clone()?,
            tmp: self.tmp.try_clone()?,
            work: self.work.try_clone()?,
        })
    }

    /// Makes a fanotify(7) group that reports new names in the trees. Returns `None` for file systems of the container
    /// and for kernels that refuse the group; then the runner watches each directory.
    pub(super) fn watch(&self, tier: Tier) -> Option<OwnedFd> {
        match tier {
            Tier::Namespace => marks::group(&self.each().map(|(_, tree)| tree)).ok(),
            Tier::Inherited => None,
        }
    }
}

/// Descriptors of the entered root.
pub(super) struct Entered {
    pub(super) trees: Trees,
    /// /dev/null, for the client's standard input.
    pub(super) null: OwnedFd,
    /// The /proc that init and the self-check read.
    pub(super) proc: Proc,
    /// The client sees the same /proc.
    pub(super) shows_proc: bool,
}

/// Makes every mount private, so that no mount event propagates into or out of this mount namespace.
pub fn make_private() -> Result<(), SetupError> {
    mount(
        None::<&str>,
        "/",
        None::<&str>,
        MsFlags::MS_PRIVATE | MsFlags::MS_REC,
        None::<&str>,
    )
    .at(Step::PrivateMounts)
}

/// Takes every path of the plan and every device as a sealed, detached mount. /dev/null is always included, for the
/// client's standard input.
///
/// `carried` has mounts for paths that this process may not reach.
pub(super) fn take_sources(
    plan: &RootPlan,
    carried: &[OwnedFd],
) -> Result<Vec<Source>, SetupError> {
    let mut sources = Vec::new();
    for bind in &plan.binds {
        sources.push(take(bind, carried)?);
    }
    let listed = plan
        .devices
        .iter()
        .copied()
        .filter(|device| !matches!(device, Device::Null | Device::Ptmx));
    for device in [Device::Null].into_iter().chain(listed) {
        let path = device_path(device);
        let tree = take_tree(OsStr::new(&path), Seal::Device)?;
        sources.push(Source {
            tree,
            target: path.into(),
            kind: BindKind::File,
        });
    }
    Ok(sources)
}

/// Opens the plan's paths that only a capability of root reaches, such as those in a home of mode 0700. In its user
/// namespace, init does not have this capability over the directories of other users (user_namespaces(7)).
pub(super) fn carry(plan: &RootPlan) -> Vec<OwnedFd> {
    let unreachable = plan
        .binds
        .iter()
        .filter(|bind| !is_open_to_root(Path::new(&bind.source)));
    unreachable
        .take(MAX_CARRIED)
        .filter_map(|bind| {
            // After a failure, init names the path and its errno.
            let tree = open_tree(&c_path(bind.source.as_bytes()).ok()?).ok()?;
            make_tree_private(&tree).ok()?;
            Some(tree)
        })
        .collect()
}

/// True if the modes of the directories above `path` let root search them without a capability.
fn is_open_to_root(path: &Path) -> bool {
    let is_open = |status: fs::Metadata| {
        let for_owner = status.uid() == 0 && status.mode() & 0o100 != 0;
        for_owner || status.mode() & 0o001 != 0
    };
    let mut above = path.ancestors().skip(1);
    above.all(|directory| fs::metadata(directory).is_ok_and(is_open))
}

fn take(bind: &Bind, carried: &[OwnedFd]) -> Result<Source, SetupError> {
    let how = match bind.access {
        Access::Read => Seal::Data,
        Access::ReadExecute => Seal::Tree,
        Access::Write => Seal::Writable,
    };
    let is_same = |tree: &&OwnedFd| {
        fstat(tree).is_ok_and(|status| (status.st_dev, status.st_ino) == (bind.device, bind.inode))
    };
    let tree = match (take_tree(&bind.source, how), carried.iter().find(is_same)) {
        (Err(error), Some(tree)) if error.errno == Errno::EACCES as i32 => {
            let tree = tree.try_clone();
            let tree = tree.at_object(Step::TakeSource, bind.source.display())?;
            seal(&tree, how).at_object(Step::TakeSource, bind.source.display())?;
            tree
        }
        (taken, _) => taken?,
    };
    let status = fstat(&tree).at_object(Step::Describe, bind.source.display())?;
    if (status.st_dev, status.st_ino) != (bind.device, bind.inode) {
        return Err(Errno::ESTALE).at_object(Step::SourceChanged, bind.source.display());
    }
    Ok(Source {
        tree,
        target: PathBuf::from(&bind.target),
        kind: bind.kind,
    })
}

/// Clones the mount at `path` as a detached mount with the attributes of `how`.
fn take_tree(path: &OsStr, how: Seal) -> Result<OwnedFd, SetupError> {
    let at = || Path::new(path).display();
    let name = c_path(path.as_bytes())?;
    let tree = open_tree(&name).at_object(Step::TakeSource, at())?;
    seal(&tree, how).at_object(Step::TakeSource, at())?;
    Ok(tree)
}

/// Mounts the new root, fills it, enters it and detaches the old one.
pub(super) fn build(plan: &Plan, sources: Vec<Source>) -> Result<Entered, SetupError> {
    let outer = Proc::open().at_object(Step::Describe, "/proc")?;
    let base = staging()?;
    tmpfs(base, "mode=0755,size=1m,nr_inodes=1024", MsFlags::empty())?;
    let inside = |path: &str| base.join(path.trim_start_matches('/'));
    write_etc(&inside("/etc"))?;
    write_file(&inside(UNRULED_FILE), "")?;
    make_devices(&inside("/dev"))?;
    if plan.root.devices.contains(&Device::Ptmx) {
        mount_terminals(&inside("/dev"))?;
    }
    make_directory(&inside("/proc"))?;
    let limits = format!("size={},nr_inodes={}", plan.root.bytes, plan.root.files);
    for (tree, path, mode) in [
        (Root::Home, HOME, "0700"),
        (Root::Tmp, TMP, "1777"),
        (Root::Work, WORK, "0700"),
    ] {
        let sealed = plan.keeps(Protection::NoExec) && !plan.root.exec.contains(&tree);
        let flags = if sealed {
            MsFlags::MS_NOEXEC
        } else {
            MsFlags::empty()
        };
        make_directory(&inside(path))?;
        tmpfs(&inside(path), &format!("mode={mode},{limits}"), flags)?;
    }
    let root = open_directory(base.as_os_str())?;
    let covers = cover_tmp(&plan.root, base)?;
    let own = own_devices(
        [base, &inside(TMP)]
            .into_iter()
            .chain(covers.iter().map(PathBuf::as_path)),
    )?;
    for source in sources {
        attach_source(&root, source, &own)?;
    }
    for cover in &covers {
        make_read_only(cover, MsFlags::MS_NOEXEC)?;
    }
    let shows_proc = mount_proc(&inside("/proc"))?;
    enter(base)?;
    let null = standard_input()?;
    if !plan.root.devices.contains(&Device::Null) {
        remove_device(Device::Null)?;
    }
    if plan.keeps(Protection::ReadOnlyRoot) {
        make_read_only(Path::new("/"), MsFlags::empty())?;
    }
    match sethostname(HOST_NAME) {
        // Podman's filter allows the UTS namespace and refuses sethostname(2). The client sees the container's name.
        Ok(()) | Err(Errno::EPERM) => {}
        Err(error) => return Err(error).at_object(Step::HostName, HOST_NAME),
    }
    let trees = Trees {
        home: open_directory(OsStr::new(HOME))?,
        tmp: open_directory(OsStr::new(TMP))?,
        work: open_directory(OsStr::new(WORK))?,
    };
    let proc = if shows_proc {
        Proc::open().at_object(Step::Describe, "/proc")?
    } else {
        outer
    };
    Ok(Entered {
        trees,
        null,
        proc,
        shows_proc,
    })
}

/// Mounts a small file system on each directory that the client's temporary directory needs above a shown path.
///
/// The client owns its temporary directory, and could rename a plain directory there with the mounts below it. A mount
/// point keeps its place, and the file system becomes read-only when the mounts below it are attached.
fn cover_tmp(plan: &RootPlan, base: &Path) -> Result<Vec<PathBuf>, SetupError> {
    let mut covers = Vec::new();
    for name in plan.names_in_tmp() {
        let target = Path::new(TMP).join(name);
        if plan
            .binds
            .iter()
            .any(|bind| bind.target == target.as_os_str())
        {
            continue;
        }
        let cover = base.join(target.strip_prefix("/").unwrap_or(&target));
        make_directory(&cover)?;
        tmpfs(
            &cover,
            "mode=0755,size=64k,nr_inodes=1024",
            MsFlags::MS_NOEXEC,
        )?;
        covers.push(cover);
    }
    Ok(covers)
}

/// Devices of the sandbox's own file systems, in which mount points may be made.
fn own_devices<'p>(paths: impl Iterator<Item = &'p Path>) -> Result<Vec<u64>, SetupError> {
    let device = |path: &Path| {
        let status = fs::metadata(path).at_object(Step::Describe, path.display())?;
        Ok(status.dev())
    };
    paths.map(device).collect()
}

/// Opens the trees in the container's root, for tier `inherited`. Landlock alone restricts the other paths.
pub(super) fn shared(plan: &RootPlan) -> Result<Entered, SetupError> {
    let trees = Trees {
        home: open_directory(&plan.home)?,
        tmp: open_directory(&plan.tmp)?,
        work: open_directory(&plan.work)?,
    };
    Ok(Entered {
        trees,
        null: standard_input()?,
        proc: Proc::open().at_object(Step::Describe, "/proc")?,
        shows_proc: true,
    })
}

/// Returns the directory on which the new root is mounted before it becomes the root.
pub fn staging() -> Result<&'static Path, SetupError> {
    STAGING
        .into_iter()
        .map(Path::new)
        .find(|path| path.is_dir())
        .ok_or(Errno::ENOENT)
        .at_object(
            Step::RootFilesystem,
            format_args!("on one of {}", STAGING.join(" ")),
        )
}

/// Mounts a tmpfs with nosuid, nodev, `flags` and the mount options `options`.
pub fn tmpfs(target: &Path, options: &str, flags: MsFlags) -> Result<(), SetupError> {
    let flags = flags | MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("tmpfs"), target, Some("tmpfs"), flags, Some(options))
        .at_object(Step::RootFilesystem, target.display())
}

fn write_etc(etc: &Path) -> Result<(), SetupError> {
    make_directory(etc)?;
    for (name, content) in etc_files() {
        write_file(&etc.join(name), &content)?;
    }
    Ok(())
}

/// Name service files of the new root, by their names in /etc. The host's files would reveal its users, names and
/// resolver.
pub fn etc_files() -> [(&'static str, String); 6] {
    let id = INSIDE_ID;
    [
        ("passwd", format!("sandbox:x:{id}:{id}::{HOME}:/bin/sh\n")),
        ("group", format!("sandbox:x:{id}:\n")),
        (
            "hosts",
            format!("127.0.0.1 localhost\n127.0.0.1 {HOST_NAME}\n"),
        ),
        ("hostname", format!("{HOST_NAME}\n")),
        (
            "nsswitch.conf",
            "passwd: files\ngroup: files\nhosts: files dns\n".to_owned(),
        ),
        // The resolver in the stage, which resolves no name.
        (
            "resolv.conf",
            "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n".to_owned(),
        ),
    ]
}

fn write_file(path: &Path, content: &str) -> Result<(), SetupError> {
    fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o644)
        .open(path)
        .and_then(|mut file| file.write_all(content.as_bytes()))
        .at_object(Step::MakeTarget, path.display())
}

/// Attaches a source below `base`. Makes the mount point if it is missing.
///
/// `own` has the devices of the file systems in which a mount point may be made.
fn attach_source(base: &OwnedFd, source: Source, own: &[u64]) -> Result<(), SetupError> {
    let target = mount_point::open(base, &source.target, source.kind, own)
        .at_object(Step::MakeTarget, source.target.display())?;
    attach(&source.tree, &target).at_object(Step::AttachSource, source.target.display())
}

fn make_directory(path: &Path) -> Result<(), SetupError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(path)
        .at_object(Step::MakeTarget, path.display())
}

/// Mounts a fresh procfs. If the kernel refuses with `EPERM`, shows harmless files of the old /proc and returns
/// `false`.
fn mount_proc(target: &Path) -> Result<bool, SetupError> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    match mount(Some("proc"), target, Some("proc"), flags, None::<&str>) {
        Ok(()) => Ok(true),
        Err(Errno::EPERM) => show_harmless(target).map(|()| false),
        Err(errno) => Err(errno).at(Step::MountProc),
    }
}

/// Attaches the files of the container's /proc that reveal no process. Skips missing and covered files.
fn show_harmless(target: &Path) -> Result<(), SetupError> {
    let directory = open_directory(target.as_os_str())?;
    let own = own_devices([target].into_iter())?;
    for name in HARMLESS {
        let source = Path::new("/proc").join(name);
        if !fs::symlink_metadata(&source).is_ok_and(|status| status.is_file()) {
            continue;
        }
        attach_source(
            &directory,
            Source {
                tree: take_tree(source.as_os_str(), Seal::Data)?,
                target: Path::new("/").join(name),
                kind: BindKind::File,
            },
            &own,
        )?;
    }
    Ok(())
}

/// Enters the new root and detaches the old one.
///
/// With `.` as both arguments, pivot_root(2) stacks the old root on the new one, so the old root needs no directory.
fn enter(base: &Path) -> Result<(), SetupError> {
    chdir(base).at(Step::PivotRoot)?;
    pivot_root(".", ".").at(Step::PivotRoot)?;
    umount2(".", MntFlags::MNT_DETACH).at(Step::PivotRoot)?;
    chdir("/").at(Step::PivotRoot)
}

fn make_read_only(path: &Path, more: MsFlags) -> Result<(), SetupError> {
    let flags = MsFlags::MS_REMOUNT
        | MsFlags::MS_BIND
        | MsFlags::MS_RDONLY
        | MsFlags::MS_NOSUID
        | MsFlags::MS_NODEV
        | more;
    mount(None::<&str>, path, None::<&str>, flags, None::<&str>)
        .at_object(Step::ReadOnlyRoot, path.display())
}

fn open_directory(path: &OsStr) -> Result<OwnedFd, SetupError> {
    let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_RDONLY | OFlag::O_CLOEXEC;
    open(path, flags, Mode::empty()).at_object(Step::OpenTrees, path.display())
}

fn c_path(bytes: &[u8]) -> Result<CString, SetupError> {
    CString::new(bytes)
        .map_err(|_| Errno::EINVAL)
        .at_object(Step::TakeSource, "the path contains a NUL byte")
}
