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
