//! User and group of the client: id 1000 inside.
//!
//! Outside, the client has an unused host id if root started the runner, and otherwise the id of the runner's user. The
//! client is never the host's root. Without a user namespace (tier `inherited`) the client keeps the runner's user,
//! which may be the container's root, without capabilities.

use std::fs;
use std::ops::Range;

use model::case::Tier;
use model::layout::INSIDE_ID;
use nix::errno::Errno;
use nix::unistd::{Gid, Pid, Uid, setgroups, setresgid, setresuid};
use sys::read;

use super::error::{At as _, SetupError, Step};
use super::plan::Identity;

/// Host ids that systemd's UIDS-GIDS.md leaves unused: above the ids of containers, below the foreign ids.
const FREE_IDS: Range<u32> = 1_879_048_192..2_147_352_576;
/// Id that a user namespace shows for unmapped ids.
const OVERFLOW_ID: u32 = 65_534;

/// Chooses the identity of the client for the user of this process.
pub fn for_caller(tier: Tier) -> Identity {
    let (uid, gid) = (Uid::current(), Gid::current());
    if tier == Tier::Inherited {
        Identity::Unmapped {
            uid: uid.as_raw(),
            gid: gid.as_raw(),
        }
    } else if uid.is_root() {
        // If no id is free, the start of the stage fails with this cause.
        let ids = free_ids().unwrap_or(FREE_IDS);
        let host_id = ids.start + sys::random::below(ids.end - ids.start);
        Identity::Mapped { host_id }
    } else {
        Identity::Own {
            uid: uid.as_raw(),
            gid: gid.as_raw(),
        }
    }
}

/// Error text for an empty result of [`free_ids`].
pub(crate) const NO_FREE_ID: &str = "the user namespace maps no id that is free for the client, \
     by /proc/self/uid_map and /proc/self/gid_map";

/// Finds a range of ids for the client's user and group: mapped in the runner's user namespace, and unused.
pub(crate) fn free_ids() -> Option<Range<u32>> {
    let read = |path: &str| read::system_text(path);
    let named = format!("{}\n{}", read("/etc/passwd"), read("/etc/group"));
    let used: Vec<u32> = named.lines().filter_map(|line| field(line, 2)).collect();
    free_among(
        &read("/proc/self/uid_map"),
        &read("/proc/self/gid_map"),
        &used,
    )
}

/// Finds the part of [`FREE_IDS`] that both maps contain, or else the longest gap between the `used` ids.
fn free_among(uid_map: &str, gid_map: &str, used: &[u32]) -> Option<Range<u32>> {
    let (users, groups) = (mapped(uid_map), mapped(gid_map));
    let both: Vec<Range<u32>> = users
        .iter()
        .flat_map(|user| groups.iter().map(move |group| common(user, group)))
        .collect();
    let unused = both.iter().map(|ids| common(ids, &FREE_IDS));
    let longest = |ids: &Range<u32>| ids.len();
    if let Some(ids) = unused.max_by_key(longest).filter(|ids| !ids.is_empty()) {
        return Some(ids);
    }
    let mut used = [used, &[0, INSIDE_ID, OVERFLOW_ID]].concat();
    used.sort_unstable();
    let starts = used.iter().map(|id| id.saturating_add(1));
    let ends = used.iter().skip(1).copied().chain([u32::MAX]);
    let gaps: Vec<Range<u32>> = starts.zip(ends).map(|(start, end)| start..end).collect();
    both.iter()
        .flat_map(|ids| gaps.iter().map(move |gap| common(ids, gap)))
        .filter(|ids| !ids.is_empty())
        .max_by_key(longest)
}

/// Parses the ids inside a namespace from its map.
fn mapped(map: &str) -> Vec<Range<u32>> {
    map.lines()
        .filter_map(|line| {
            let mut numbers = line.split_whitespace().map(str::parse::<u32>);
            let start = numbers.next()?.ok()?;
            let count = numbers.nth(1)?.ok()?;
            Some(start..start.saturating_add(count))
        })
        .collect()
}

fn common(one: &Range<u32>, other: &Range<u32>) -> Range<u32> {
    one.start.max(other.start)..one.end.min(other.end)
}

fn field(line: &str, position: usize) -> Option<u32> {
    line.split(':').nth(position)?.parse().ok()
}

/// Returns the host user id and group id of the client.
pub fn host_ids(identity: Identity) -> (u32, u32) {
    match identity {
        Identity::Mapped { host_id } => (host_id, host_id),
        Identity::Own { uid, gid } | Identity::Unmapped { uid, gid } => (uid, gid),
    }
}

/// Drops the supplementary groups of root, whose client gets an id of its own. An ordinary user cannot drop groups; they
/// are not mapped inside.
pub(crate) fn drop_groups() -> Result<(), SetupError> {
    if Uid::current().is_root() {
        setgroups(&[]).at(Step::DropGroups)
    } else {
        Ok(())
    }
}

/// Writes the id maps of the calling process's own user namespace, for a runner started by an ordinary user.
pub fn map_own(uid: u32, gid: u32) -> Result<(), SetupError> {
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", &format!("{INSIDE_ID} {uid} 1"))?;
    write("/proc/self/gid_map", &format!("{INSIDE_ID} {gid} 1"))
}

/// Writes the id maps of another process's user namespace, for a runner started by root. Only a writer outside with
/// CAP_SETUID may map an id other than its own (user_namespaces(7)).
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

/// Changes to the mapped group, for a runner started by root, once the maps are written.
pub(crate) fn become_inside_group(identity: Identity) -> Result<(), SetupError> {
    match identity {
        Identity::Mapped { .. } => {
            let gid = Gid::from_raw(INSIDE_ID);
            setresgid(gid, gid, gid).at(Step::BecomeInsideUser)
        }
        Identity::Own { .. } | Identity::Unmapped { .. } => Ok(()),
    }
}

/// Changes to the mapped user, which an ordinary user already is once the maps are written. The change clears the
/// parent-death signal (prctl(2)).
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_map_keeps_the_free_ids() {
        let whole = "         0          0 4294967295\n";
        assert_eq!(free_among(whole, whole, &[0, 1000]), Some(FREE_IDS));
    }

    #[test]
    fn small_map_gives_unused_ids_inside_it() {
        let map = "0 1000 1\n1 100000 65535\n";
        let ids = free_among(map, map, &[0, 33, 1000, 40_000]).unwrap();
        assert_eq!(ids, 1001..40_000);
        let groups = "0 1000 1\n1 100000 2000\n";
        assert_eq!(free_among(map, groups, &[33]), Some(1001..2001));
    }

    #[test]
    fn map_of_used_ids_gives_none() {
        let one = "0 1000 1\n";
        assert_eq!(free_among(one, one, &[]), None);
        let few = "0 1000 3\n";
        assert_eq!(free_among(few, few, &[1, 2]), None);
        assert_eq!(free_among("", "", &[]), None);
    }
}
