//! The built-in cases pass, as root and as an ordinary user.

use crate::kit::Run;
use crate::needs_sandbox;

#[test]
fn case_a_and_case_b_pass() {
    needs_sandbox!();
    Run::case_a().json().assert_passed();
    Run::case_b().json().assert_passed();
}

#[test]
fn case_a_and_case_b_pass_for_an_ordinary_user() {
    needs_sandbox!();
    Run::case_a().as_ordinary_user().json().assert_passed();
    Run::case_b().as_ordinary_user().json().assert_passed();
}

#[test]
fn the_parts_of_a_run_follow_one_another_on_its_clock() {
    needs_sandbox!();
    for run in [Run::case_b(), Run::case_b().as_ordinary_user()] {
        let report = run.json().report;
        let evidence = &report["evidence"];
        let moments = &evidence["moments"];
        let times = [
            &moments["supervised_us"],
            &moments["released_us"],
            &evidence["connections"][0]["at_us"],
            &evidence["requests"][0]["at_us"],
            &moments["ended_us"],
        ];
        let times = times.map(|time| time.as_u64().unwrap());
        assert!(times.is_sorted() && times[0] > 0, "{times:?}");
        assert!(times[4] / 1_000 <= report["duration_ms"].as_u64().unwrap());
    }
}
