//! no_new_privs, and the five capability sets: emptied here, read back by the probe.

use caps::CapSet;
use nix::errno::Errno;
use nix::sys::prctl;

use super::error::{At as _, SetupError, Step};

/// Sets no_new_privs.
pub(super) fn set_no_new_privileges() -> Result<(), SetupError> {
    prctl::set_no_new_privs().at(Step::NoNewPrivileges)
}

/// Empties all five sets. The bounding set goes first, while CAP_SETPCAP is there.
pub(super) fn drop_all() -> Result<(), SetupError> {
    for (set, name) in [
        (CapSet::Bounding, "bounding"),
        (CapSet::Ambient, "ambient"),
        (CapSet::Effective, "effective"),
        (CapSet::Inheritable, "inheritable"),
        (CapSet::Permitted, "permitted"),
    ] {
        caps::clear(None, set)
            .map_err(|_| Errno::EPERM)
            .at_object(Step::DropCapabilities, name)?;
    }
    Ok(())
}
