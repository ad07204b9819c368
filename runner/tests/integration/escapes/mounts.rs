//! Mounts of the sandbox, as seen outside.

use super::attempt::hostile;
use crate::needs_sandbox;
use crate::teardown::watch::Started;

#[test]
fn no_mount_of_the_sandbox_shows_outside() {
    needs_sandbox!();
    let own = || std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mut started = Started::new(hostile(&["sleep"]));
    let client = started.client();
    let inside = std::fs::read_to_string(format!("/proc/{client}/mountinfo")).unwrap();
    let (during, after) = (own(), {
        started.interrupt();
        own()
    });
    assert!(inside.contains(" /home/sandbox "), "{inside}");
    // The number of a mount is unique on the machine.
    let numbers = |text: &str| -> Vec<String> {
        let first = |line: &str| line.split(' ').next().unwrap().to_owned();
        text.lines().map(first).collect()
    };
    let inside = numbers(&inside);
    for outside in [numbers(&during), numbers(&after)] {
        assert!(outside.iter().all(|number| !inside.contains(number)));
    }
}
