//! The two engines, as commands: the same words start a container in either.

use std::process::{Command, Output, Stdio};

/// An engine that .ci/containers has started, with the images `runner` and `runner-slim` in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    Docker,
    Podman,
}

pub(crate) const IMAGE: &str = "runner";
pub(crate) const SLIM: &str = "runner-slim";

impl Engine {
    pub(crate) const ALL: [Self; 2] = [Self::Docker, Self::Podman];

    pub(crate) fn program(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Podman => "podman",
        }
    }

    pub(crate) fn named(program: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|engine| engine.program() == program)
    }

    /// Runs `docker WORDS…`, asserts success and returns its standard output.
    #[track_caller]
    pub(crate) fn says(self, words: &[&str]) -> String {
        let output = self.output(words);
        assert!(
            output.status.success(),
            "{} {words:?}: {}",
            self.program(),
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    pub(crate) fn output(self, words: &[&str]) -> Output {
        assert!(
            std::env::var_os("CONTAINERS_MUST_WORK").is_some(),
            "there are no engines and no images: run .ci/containers, which starts and builds them"
        );
        Command::new(self.program())
            .args(words)
            .stdin(Stdio::null())
            .output()
            .unwrap_or_else(|error| panic!("{}: {error}", self.program()))
    }

    /// Runs a container that is removed when it ends: `flags` of `run` before the image, `arguments` after it.
    pub(crate) fn run(self, flags: &[&str], image: &str, arguments: &[&str]) -> Output {
        let words = [&["run", "--rm"], flags, &[image], arguments].concat();
        self.output(&words)
    }

    /// Starts a container that runs beside the test and is removed at its end.
    pub(crate) fn start(self, flags: &[&str], image: &str, arguments: &[&str]) -> Container {
        let words = [&["run", "--detach"], flags, &[image], arguments].concat();
        Container {
            engine: self,
            id: self.says(&words),
        }
    }
}

/// A container in the background.
pub(crate) struct Container {
    pub(crate) engine: Engine,
    pub(crate) id: String,
}

impl Container {
    /// Returns the container's output so far, from both streams.
    pub(crate) fn logs(&self) -> String {
        let output = self.engine.output(&["logs", &self.id]);
        [&output.stdout, &output.stderr]
            .map(|text| String::from_utf8_lossy(text))
            .concat()
    }

    pub(crate) fn inspect(&self, format: &str) -> String {
        self.engine.says(&["inspect", "--format", format, &self.id])
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        self.engine
            .output(&["rm", "--force", "--volumes", &self.id]);
    }
}
