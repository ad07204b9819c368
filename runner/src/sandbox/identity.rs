//! Who the client is: user 1000 inside, and outside either a host id that nobody has or the user who started
//! the runner. It is never the host's root. Without a user namespace (tier `inherited`) it is whoever started the
//! runner, also the container's root, and then has no capability.

use std::fs;

use nix::errno::Errno;
use nix::unistd::{Gid, Pid, Uid, setgroups, setresgid, setresuid};

use super::error::{At as _, SetupError, Step};
use super::plan::{INSIDE_ID, Identity};
use crate::case::Tier;

/// Host ids that no allocation uses: containers end below (systemd's UIDS-GIDS.md), foreign ids start above.
const FREE_IDS: std::ops::Range<u32> = 1_879_048_192..2_147_352_576;

/// The identity of the client for whoever runs this process.
pub(crate) fn for_caller(tier: Tier) -> Identity {
    let (uid, gid) = (Uid::current(), Gid::current());
    if tier == Tier::Inherited {
        Identity::Unmapped {
            uid: uid.as_raw(),
            gid: gid.as_raw(),
        }
    } else if uid.is_root() {
        let host_id = FREE_IDS.start + crate::random::below(FREE_IDS.end - FREE_IDS.start);
        Identity::Mapped { host_id }
    } else {
        Identity::Own {
            uid: uid.as_raw(),
            gid: gid.as_raw(),
        }
    }
}

/// Host user and group of the client.
pub(crate) fn host_ids(identity: Identity) -> (u32, u32) {
    match identity {
        Identity::Mapped { host_id } => (host_id, host_id),
        Identity::Own { uid, gid } | Identity::Unmapped { uid, gid } => (uid, gid),
    }
}

/// Leaves root's supplementary groups behind; an ordinary user's cannot be left, and are not mapped inside.
pub(crate) fn drop_groups(identity: Identity) -> Result<(), SetupError> {
    match identity {
        Identity::Mapped { .. } => setgroups(&[]).at(Step::DropGroups),
        Identity::Own { .. } | Identity::Unmapped { .. } => Ok(()),
    }
}

/// Writes the maps of the calling process's own user namespace: an ordinary user's path.
pub(crate) fn map_own(uid: u32, gid: u32) -> Result<(), SetupError> {
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", &format!("{INSIDE_ID} {uid} 1"))?;
    write("/proc/self/gid_map", &format!("{INSIDE_ID} {gid} 1"))
}

/// Writes the maps of another process's user namespace: root's path, since only a writer with CAP_SETUID
/// outside may map an id that is not its own.
pub(crate) fn map_other(process: Pid, host_id: u32) -> Result<(), SetupError> {
    write(
        &format!("/proc/{process}/uid_map"),
        &format!("{INSIDE_ID} {host_id} 1"),
    )?;
    write(
        &format!("/proc/{process}/gid_map"),
        &format!("{INSIDE_ID} {host_id} 1"),
    )
}

/// Takes the group of the namespace; root's path, as soon as the maps are there.
pub(crate) fn become_inside_group(identity: Identity) -> Result<(), SetupError> {
    match identity {
        Identity::Mapped { .. } => {
            let gid = Gid::from_raw(INSIDE_ID);
            setresgid(gid, gid, gid).at(Step::BecomeInsideUser)
        }
        Identity::Own { .. } | Identity::Unmapped { .. } => Ok(()),
    }
}

/// Takes the user of the namespace; an ordinary user has it since the maps were written. Note that it clears
/// the death signal.
pub(crate) fn become_inside_user(identity: Identity) -> Result<(), SetupError> {
    if matches!(identity, Identity::Unmapped { .. }) {
        return Ok(());
    }
    if matches!(identity, Identity::Mapped { .. }) {
        let uid = Uid::from_raw(INSIDE_ID);
        setresuid(uid, uid, uid).at(Step::BecomeInsideUser)?;
    }
    if Uid::current().as_raw() == INSIDE_ID && Gid::current().as_raw() == INSIDE_ID {
        Ok(())
    } else {
        Err(Errno::EPERM).at_object(
            Step::BecomeInsideUser,
            format_args!("still {}", Uid::current()),
        )
    }
}

fn write(path: &str, content: &str) -> Result<(), SetupError> {
    fs::write(path, content).at_object(Step::WriteIdMaps, format_args!("{path}: {content}"))
}
