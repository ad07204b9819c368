//! Help and usage errors match `tests/cmd`, each with its exit code.

use crate::kit;

#[test]
fn the_help_and_the_usage_errors_are_as_shown() {
    trycmd::TestCases::new()
        .register_bin("runner", kit::runner())
        .env("COLUMNS", "100")
        .case(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cmd/*.trycmd"));
}
