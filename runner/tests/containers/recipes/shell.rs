//! The commands that build and run the image.

use std::path::Path;
use std::process::{Command, Stdio};

use super::SECTION;
use crate::text::{blocks_of, section};

/// Images are built without a registry: on these bases, and for Podman with the compiled programs.
const BASES: &str = "--build-arg BUILDER=builder-base --build-arg SLIM=slim-base";
const COMPILED: &str = "--volume $work/target:/source/target";

#[test]
#[ignore = "needs container engines: .ci/containers"]
fn the_image_is_built_and_run_as_written() {
    let blocks = blocks_of(section(SECTION), "shell");
    let [commands] = blocks.as_slice() else {
        panic!("not one block: {blocks:?}");
    };
    let mut ran = 0;
    for line in commands.lines() {
        let words: Vec<_> = line.splitn(3, ' ').collect();
        let line = match words[..] {
            ["docker", "build", rest] => format!("docker build --network none {BASES} {rest}"),
            ["podman", "build", rest] => {
                format!("podman build --network none {BASES} {COMPILED} {rest}")
            }
            ["docker" | "podman", "run", _] => line.to_owned(),
            _ => panic!("not known here: {line}"),
        };
        let output = Command::new("sh")
            .args(["-ec", &line])
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
            .env("DOCKER_BUILDKIT", "0")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(
            said.starts_with("PASSED"),
            words[1] == "run",
            "{line}: {said}"
        );
        ran += 1;
    }
    assert_eq!(ran, 4);
}
