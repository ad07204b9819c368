//! Files of the host that every audit shows, and those that none does.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use super::Audit;
use crate::{needs_program, needs_sandbox};

#[test]
fn public_names_of_protocols_and_ports_are_found() {
    needs_program!("/etc/services");
    for (database, name, code) in [
        ("protocols", "tcp", 0),
        ("services", "https", 0),
        ("services", "no-such-service", 2),
    ] {
        let audit = || Audit::of(["getent", database, name]);
        for audit in [audit(), audit().as_ordinary_user()] {
            let audited = audit.run();
            audited.assert_code(code);
            assert_eq!(audited.names(), [""; 0]);
        }
    }
}

#[test]
fn file_of_the_caller_below_tmp_is_listed() {
    needs_sandbox!();
    let mut file = tempfile::NamedTempFile::new_in("/tmp").unwrap();
    file.write_all(b"text").unwrap();
    fs::set_permissions(file.path(), fs::Permissions::from_mode(0o644)).unwrap();
    let path = file.path().to_str().unwrap();
    let audit = || Audit::of(["cat", path, "/tmp/no-such-file-of-the-host"]);
    for audit in [audit(), audit().as_ordinary_user()] {
        let audited = audit.run();
        audited.assert_code(1);
        let lookups = &audited.report["evidence"]["lookups"];
        assert_eq!(lookups.as_array().unwrap().len(), 1, "{lookups}");
        assert_eq!(lookups[0]["path"], json!(path));
        assert_eq!(lookups[0]["advice"]["reason"], json!("absent"));
    }
    // The twin: the program's own file of that name is no lookup that failed.
    let line = format!("echo own >{path}; cat {path}");
    let audited = Audit::shell(&line).run();
    audited.assert_printed(0, "own\n");
    assert_eq!(audited.report["evidence"]["lookups"], json!([]));
}
