//! Start of an audited program: its current directory and its interpreter.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::Value;

use super::{Audit, open_directory};
use crate::needs_sandbox;

#[test]
fn current_directory_shown_by_another_name_is_kept() {
    needs_sandbox!();
    let directory = open_directory("/var/tmp");
    let at = |name: &str| directory.path().join(name);
    fs::create_dir_all(at("real/p")).unwrap();
    fs::write(at("real/p/beside"), "beside\n").unwrap();
    fs::write(
        at("real/p/s.sh"),
        "#!/bin/sh\ncat beside \"${0%/*}/beside\"\n",
    )
    .unwrap();
    for name in ["real", "real/p", "real/p/s.sh"] {
        fs::set_permissions(at(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    symlink("real", at("link")).unwrap();
    // The kernel knows the current directory by its name without links.
    for shown in [at("link/p"), at("link"), at("real"), ".".into()] {
        let audit = || {
            let audit = Audit::of(["./s.sh"]).in_directory(at("link/p"));
            audit.option("--read").option(&shown)
        };
        for audit in [audit(), audit().as_ordinary_user()] {
            let audited = audit.run();
            audited.assert_printed(0, "beside\nbeside\n");
            assert_eq!(audited.report["client"]["hidden_directory"], Value::Null);
        }
    }
    // The negative twin: another directory is shown, and the report says that this one is not.
    let audit = Audit::shell("cat beside").in_directory(at("link/p"));
    let audited = audit.option("--read=/etc/hostname").run();
    audited.assert_printed(1, "");
    let real = at("real/p");
    let hidden = real.to_str().unwrap();
    assert_eq!(audited.report["client"]["hidden_directory"], *hidden);
    assert!(
        audited
            .stderr
            .contains("\n  directory   an empty one, because ")
    );
}
