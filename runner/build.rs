//! Refuses to build an executable that is not static.
//!
//! The executable starts itself and the reference client in a root without libraries. `.cargo/config.toml` has the flag
//! for that. A `RUSTFLAGS` in the environment silently replaces the flags of that file: the executable would build, and
//! then fail in every run.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=CARGO_ENCODED_RUSTFLAGS");
    let cfg = |name: &str| env::var(format!("CARGO_CFG_{name}")).unwrap_or_default();
    let glibc = cfg("TARGET_OS") == "linux" && cfg("TARGET_ENV") == "gnu";
    let linked_statically = cfg("TARGET_FEATURE")
        .split(',')
        .any(|feature| feature == "crt-static");
    if glibc && !linked_statically {
        println!(
            "cargo::error=the executable would not be static: the flags of .cargo/config.toml are not in force"
        );
        println!("cargo::error={}", remedy());
    }
}

/// Remedy, for the most likely cause.
fn remedy() -> &'static str {
    if env::var_os("CARGO_ENCODED_RUSTFLAGS").is_some_and(|flags| !flags.is_empty()) {
        "RUSTFLAGS, or a setting like it, replaces them: run `unset RUSTFLAGS`, or add \
         `-C target-feature=+crt-static` to it"
    } else {
        "build inside the source tree, where cargo finds that file, and without --target or CARGO_BUILD_TARGET \
         for another kind of machine"
    }
}
