//! The stub under a Landlock ruleset that forbids opening files and connecting, as beside a sandboxed client.

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
    RulesetCreated, RulesetError,
};

use crate::kit::{HEAD, Plan, Surroundings, post, scenario};

/// Applies a ruleset that handles every access and allows none.
fn nothing_allowed() -> Result<RulesetCreated, RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V4))?
        .handle_access(AccessNet::from_all(ABI::V4))?
        .create()
}

#[test]
fn a_whole_run_needs_no_file_and_no_connection_of_its_own() {
    let ruleset = match nothing_allowed() {
        Ok(ruleset) => ruleset,
        Err(error) => {
            assert!(
                std::env::var_os("SANDBOX_MUST_WORK").is_none(),
                "Landlock ABI 4 is needed: {error}"
            );
            println!("skipped: Landlock ABI 4 is not there: {error}");
            return;
        }
    };
    let plan = Plan {
        surroundings: Surroundings::Sealed(ruleset),
        ..scenario("deltas = 2\nchunk_bytes = 9\nchunk_delay_ms = 1")
    };
    let mut run = plan.start_with_barrier();
    let mut client = run.connect();
    client.send(HEAD);
    let request = run.wait_for_began();
    run.go(request);
    assert_eq!(client.head_answer().status, 200);
    client.send(post());
    let request = run.wait_for_began();
    run.go(request);
    let events = client.answer().events();
    let mut other = run.connect();
    other.send("nonsense\r\n\r\n");
    let request = run.wait_for_began();
    run.go(request);
    assert_eq!(other.answer().status, 400);
    assert_eq!(run.finish().sent(), events);
}
