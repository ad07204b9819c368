//! Sensitive places: paths, addresses and names at which a machine keeps credentials, keys and personal data.
//!
//! One table of patterns, as data. Whether the program got anything there does not matter: a program that looks there
//! has a reason to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use scenario::closed_set;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Attempt, LookupKind, Question};

closed_set! {
    /// Content of a sensitive place.
    pub enum Sensitive {
        /// Keys and hosts of ssh(1).
        Ssh = "ssh",
        /// Credentials of the AWS tools.
        Aws = "aws",
        /// Credentials of the Google Cloud tools.
        Gcloud = "gcloud",
        /// Credentials of the Azure tools.
        Azure = "azure",
        /// Passwords of curl(1), ftp(1) and others.
        Netrc = "netrc",
        /// Passwords of git(1).
        Git = "git",
        /// Token of the GitHub command line.
        Github = "github",
        /// Credentials for container registries.
        Docker = "docker",
        /// Credentials for clusters.
        Kubernetes = "kubernetes",
        /// Keys, passwords and keyrings of the user.
        Keyring = "keyring",
        /// Profile of a browser: cookies, passwords, history.
        Browser = "browser",
        /// Wallet of a currency.
        Wallet = "wallet",
        /// Metadata service of a cloud, which gives out credentials.
        CloudMetadata = "cloud-metadata",
    }
}

/// Sensitive path that the program looked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SensitivePath {
    /// Content of the place.
    pub what: Sensitive,
    /// The path; hostile.
    pub path: String,
    /// The strongest use of the path.
    pub kind: LookupKind,
    /// Number of lookups.
    pub count: u64,
    /// Time of the first lookup.
    pub at_us: u64,
}

/// Consecutive names of a path. Most are relative to a home, of which a program may try any.
#[rustfmt::skip]
const PATHS: [(Sensitive, &[&str]); 41] = [
    (Sensitive::Ssh,        &[".ssh"]),
    (Sensitive::Aws,        &[".aws"]),
    (Sensitive::Gcloud,     &[".config", "gcloud"]),
    (Sensitive::Azure,      &[".azure"]),
    (Sensitive::Netrc,      &[".netrc"]),
    (Sensitive::Git,        &[".git-credentials"]),
    (Sensitive::Git,        &[".config", "git", "credentials"]),
    (Sensitive::Github,     &[".config", "gh"]),
    (Sensitive::Docker,     &[".docker", "config.json"]),
    (Sensitive::Docker,     &[".config", "containers", "auth.json"]),
    (Sensitive::Kubernetes, &[".kube"]),
    (Sensitive::Kubernetes, &["secrets", "kubernetes.io"]),
    (Sensitive::Keyring,    &[".gnupg"]),
    (Sensitive::Keyring,    &[".password-store"]),
    (Sensitive::Keyring,    &[".local", "share", "keyrings"]),
    (Sensitive::Keyring,    &[".local", "share", "kwalletd"]),
    (Sensitive::Browser,    &[".mozilla"]),
    (Sensitive::Browser,    &[".config", "google-chrome"]),
    (Sensitive::Browser,    &[".config", "chromium"]),
    (Sensitive::Browser,    &[".config", "BraveSoftware"]),
    (Sensitive::Browser,    &[".config", "microsoft-edge"]),
    (Sensitive::Browser,    &[".config", "opera"]),
    (Sensitive::Browser,    &[".config", "vivaldi"]),
    (Sensitive::Browser,    &[".librewolf"]),
    (Sensitive::Browser,    &["snap", "firefox"]),
    (Sensitive::Browser,    &["snap", "chromium"]),
    (Sensitive::Browser,    &[".var", "app", "org.mozilla.firefox"]),
    (Sensitive::Browser,    &[".var", "app", "org.chromium.Chromium"]),
    (Sensitive::Browser,    &[".var", "app", "com.google.Chrome"]),
    (Sensitive::Browser,    &[".var", "app", "com.brave.Browser"]),
    (Sensitive::Wallet,     &["wallet.dat"]),
    (Sensitive::Wallet,     &[".bitcoin"]),
    (Sensitive::Wallet,     &[".litecoin"]),
    (Sensitive::Wallet,     &[".dogecoin"]),
    (Sensitive::Wallet,     &[".bitmonero"]),
    (Sensitive::Wallet,     &[".ethereum"]),
    (Sensitive::Wallet,     &[".electrum"]),
    (Sensitive::Wallet,     &[".config", "solana"]),
    (Sensitive::Wallet,     &[".config", "Exodus"]),
    (Sensitive::Wallet,     &[".config", "Ledger Live"]),
    (Sensitive::Wallet,     &[".config", "atomic"]),
];

/// Addresses of metadata services.
const ADDRESSES: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
];

/// Names of metadata services.
const NAMES: [&str; 1] = ["metadata.google.internal"];

impl Sensitive {
    /// Returns the content of a path; `None` for an ordinary one.
    pub fn of_path(path: &Path) -> Option<Self> {
        let names: Vec<&str> = path
            .iter()
            .map(|name| name.to_str().unwrap_or(""))
            .collect();
        let lies_in = |pattern: &[&str]| names.windows(pattern.len()).any(|part| part == pattern);
        let found = PATHS.iter().find(|(_, pattern)| lies_in(pattern))?;
        Some(found.0)
    }

    /// Returns the content of a directory that lies in a sensitive place, holds one that exists, or by its name holds
    /// several, as `.config` does.
    pub fn of_tree(directory: &Path, exists: impl Fn(&Path) -> bool) -> Option<Self> {
        let holds = |pattern: &[&str]| {
            let in_it = exists(&directory.join(pattern.iter().collect::<PathBuf>()));
            let mut known = 1..pattern.len();
            in_it
                || known
                    .any(|known| directory.ends_with(pattern[..known].iter().collect::<PathBuf>()))
        };
        let found = || PATHS.iter().find(|(_, pattern)| holds(pattern));
        Self::of_path(directory).or_else(|| Some(found()?.0))
    }

    /// Returns the content of the destination of a call.
    pub fn of_attempt(attempt: &Attempt) -> Option<Self> {
        let is_one =
            attempt.has_destination() && attempt.ip().is_some_and(|ip| ADDRESSES.contains(&ip));
        is_one.then_some(Self::CloudMetadata)
    }

    /// Returns the content of a name that was asked for.
    pub fn of_question(question: &Question) -> Option<Self> {
        let name = question.name.as_str();
        let mut known = NAMES.into_iter();
        let is_one = known.any(|known| known.eq_ignore_ascii_case(name));
        is_one.then_some(Self::CloudMetadata)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::evidence::fixture::{connect, question};

    fn of(path: &str) -> Option<Sensitive> {
        Sensitive::of_path(Path::new(path))
    }

    #[test]
    fn sensitive_path_is_known_in_any_home() {
        for (path, what) in [
            ("/root/.ssh", Sensitive::Ssh),
            ("/home/sandbox/.ssh/id_ed25519", Sensitive::Ssh),
            ("/home/me/.aws/credentials", Sensitive::Aws),
            ("/home/me/.netrc", Sensitive::Netrc),
            ("/home/me/.git-credentials", Sensitive::Git),
            ("/home/me/.config/gh/hosts.yml", Sensitive::Github),
            ("/home/me/.docker/config.json", Sensitive::Docker),
            ("/home/me/.kube/config", Sensitive::Kubernetes),
            (
                "/run/secrets/kubernetes.io/serviceaccount/token",
                Sensitive::Kubernetes,
            ),
            (
                "/home/me/.mozilla/firefox/x/logins.json",
                Sensitive::Browser,
            ),
            (
                "/home/me/.config/google-chrome/Default/Cookies",
                Sensitive::Browser,
            ),
            ("/home/me/.bitcoin/wallet.dat", Sensitive::Wallet),
            (".aws/credentials", Sensitive::Aws),
        ] {
            assert_eq!(of(path), Some(what), "{path}");
        }
    }

    #[test]
    fn tree_with_a_sensitive_place_is_sensitive() {
        let of_tree = |path: &str| {
            let exists = |path: &Path| path == Path::new("/home/me/tools/.ssh");
            Sensitive::of_tree(Path::new(path), exists)
        };
        for path in [
            "/home/me/.local",
            "/home/me/.local/share",
            "/home/me/.config",
            "/home/me/.ssh/bin",
            "/home/me/tools",
        ] {
            assert!(of_tree(path).is_some(), "{path}");
        }
        for path in [
            "/home/me/.local/bin",
            "/home/me/.pyenv/versions/3.12",
            "/home/me",
            "/opt/tool",
        ] {
            assert_eq!(of_tree(path), None, "{path}");
        }
    }

    #[test]
    fn path_with_similar_names_is_ordinary() {
        for path in [
            "/",
            "/home/me",
            "/home/me/.config",
            "/home/me/.config/ghostty",
            "/home/me/.docker",
            "/home/me/.docker/cli-plugins",
            "/home/me/config.json",
            "/home/me/.sshrc",
            "/home/me/x.ssh",
            "/home/me/.awsx",
            "/home/me/.gitconfig",
            "/home/me/.config/git/config",
            "/usr/lib/ssh",
            "/etc/ssh/ssh_config",
            "/usr/share/snap",
        ] {
            assert_eq!(of(path), None, "{path}");
        }
    }

    #[test]
    fn each_pattern_is_listed_once_and_finds_itself() {
        let patterns: BTreeSet<&[&str]> = PATHS.iter().map(|(_, pattern)| *pattern).collect();
        assert_eq!(patterns.len(), PATHS.len());
        for (what, pattern) in PATHS {
            assert_eq!(of(&format!("/home/me/{}/x", pattern.join("/"))), Some(what));
        }
        let found: BTreeSet<Sensitive> = PATHS.iter().map(|(what, _)| *what).collect();
        let all = Sensitive::ALL
            .into_iter()
            .filter(|one| !found.contains(one));
        assert_eq!(all.collect::<Vec<_>>(), [Sensitive::CloudMetadata]);
    }

    #[test]
    fn metadata_service_is_known_by_address_and_name() {
        let metadata = Some(Sensitive::CloudMetadata);
        for (family, address) in [
            ("inet", "169.254.169.254"),
            ("inet6", "::ffff:169.254.169.254"),
            ("inet6", "fd00:ec2::254"),
        ] {
            let attempt = connect(family, address, Some(80));
            assert_eq!(Sensitive::of_attempt(&attempt), metadata, "{address}");
        }
        for (family, address) in [("inet", "169.254.169.253"), ("unix", "169.254.169.254")] {
            let attempt = connect(family, address, Some(80));
            assert_eq!(Sensitive::of_attempt(&attempt), None, "{address}");
        }
        let asked = |name| Sensitive::of_question(&question(name));
        assert_eq!(asked("Metadata.google.internal"), metadata);
        assert_eq!(asked("google.internal"), None);
    }
}
