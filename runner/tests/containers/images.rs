//! Contents of the images, and how they start.

use serde_json::Value;

use crate::engine::{Engine, IMAGE, SLIM};

fn inspected(engine: Engine, image: &str) -> Value {
    let described = engine.says(&["image", "inspect", image]);
    let described: Value = serde_json::from_str(&described).unwrap();
    described[0].clone()
}

/// Names and modes in the image, without those that an engine makes in each container.
fn files(engine: Engine, image: &str) -> Vec<String> {
    let id = engine.says(&["create", "--network", "none", image]);
    let archive = engine.output(&["export", &id]).stdout;
    engine.says(&["rm", &id]);
    let mut tar = std::process::Command::new("tar")
        .args(["--list", "--verbose", "--numeric-owner"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut tar.stdin.take().unwrap(), &archive).unwrap();
    let listed = String::from_utf8(tar.wait_with_output().unwrap().stdout).unwrap();
    let made = ["dev", "etc", "proc", "sys", "run", ".dockerenv"];
    listed
        .lines()
        .filter_map(|line| {
            let words: Vec<_> = line.split_whitespace().collect();
            let name = words[5].trim_start_matches("./");
            let top = name.split('/').next().unwrap();
            (!made.contains(&top) && !name.is_empty())
                .then(|| format!("{} {} {name}", words[0], words[1]))
        })
        .collect()
}

#[test]
#[ignore = "needs container engines: .ci/containers"]
fn the_image_is_one_file_and_a_place_for_temporary_files() {
    for engine in Engine::ALL {
        let mut found = files(engine, IMAGE);
        found.sort();
        assert_eq!(
            found,
            ["-rwxr-xr-x 0/0 runner", "drwxrwxrwt 0/0 tmp/"],
            "{engine:?}"
        );
    }
}

#[test]
#[ignore = "needs container engines: .ci/containers"]
fn the_images_say_what_they_are_and_start_the_main_job_as_nobody() {
    for engine in Engine::ALL {
        for image in [IMAGE, SLIM] {
            let image = inspected(engine, image);
            let config = &image["Config"];
            assert_eq!(config["User"], "65532:65532");
            assert_eq!(config["Entrypoint"], serde_json::json!(["/runner"]));
            assert_eq!(config["Cmd"], serde_json::json!(["case-b"]));
            let label = |name: &str| {
                config["Labels"][format!("org.opencontainers.image.{name}")]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned()
            };
            assert_eq!(label("title"), "runner");
            assert_eq!(label("version"), env!("CARGO_PKG_VERSION"));
            assert_eq!(label("licenses"), env!("CARGO_PKG_LICENSE"));
            assert!(!label("description").is_empty());
        }
    }
}

#[test]
#[ignore = "needs container engines: .ci/containers"]
fn buildah_makes_the_same_image() {
    let config = |image: &str| inspected(Engine::Podman, image)["Config"].clone();
    assert_eq!(config("runner-buildah"), config(IMAGE));
    assert_eq!(
        files(Engine::Podman, "runner-buildah"),
        files(Engine::Podman, IMAGE)
    );
    let output = Engine::Podman.run(&["--network", "none"], "runner-buildah", &[]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}
