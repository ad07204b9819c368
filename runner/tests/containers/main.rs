//! The images in real engines.
#[test]
#[ignore = "needs container engines: .ci/containers"]
fn placeholder() {}
