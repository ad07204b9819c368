//! no_new_privs and the five capability sets.

use caps::CapSet;
use model::case::Tier;
use nix::errno::Errno;
use nix::sys::prctl;

use super::error::{At as _, SetupError, Step};

/// Sets no_new_privs.
pub fn set_no_new_privileges() -> Result<(), SetupError> {
    prctl::set_no_new_privs().at(Step::NoNewPrivileges)
}

/// Empties all five capability sets, the bounding set first, because that needs CAP_SETPCAP.
///
/// Without a user namespace an ordinary user lacks CAP_SETPCAP. The bounding set then stays, and no_new_privs prevents
/// the process from gaining its capabilities.
pub fn drop_all(tier: Tier) -> Result<(), SetupError> {
    for (set, name) in [
        (CapSet::Bounding, "bounding"),
        (CapSet::Ambient, "ambient"),
        (CapSet::Effective, "effective"),
        (CapSet::Inheritable, "inheritable"),
        (CapSet::Permitted, "permitted"),
    ] {
        let cleared = caps::clear(None, set).map_err(|_| Errno::EPERM);
        if tier == Tier::Inherited && matches!(set, CapSet::Bounding) {
            continue;
        }
        cleared.at_object(Step::DropCapabilities, name)?;
    }
    Ok(())
}
