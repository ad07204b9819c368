//! no_new_privs, and the five capability sets: emptied here, read back by the probe.

use caps::CapSet;
use model::case::Tier;
use nix::errno::Errno;
use nix::sys::prctl;

use super::error::{At as _, SetupError, Step};

/// Sets no_new_privs.
pub fn set_no_new_privileges() -> Result<(), SetupError> {
    prctl::set_no_new_privs().at(Step::NoNewPrivileges)
}

/// Empties all five sets. The bounding set goes first, while CAP_SETPCAP is there. Without a user namespace an
/// ordinary user never has that: then the bounding set stays as it is, and no_new_privs keeps anything in it from
/// being gained.
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
