//! Canaries: attempts that must fail, and two that must succeed, made inside by our own code.
//!
//! They run in a child of the client's process, after its last restriction and before its exec, so that
//! domain, filter and credentials are the client's own. Each names the errno that only the layer it stands
//! for would give. Each network canary is tried twice: *answered*, where the supervisor refuses and records, and
//! *continued*, where the supervisor lets it through and the kernel itself must refuse; the port tells which.
//! The runner makes some attempts outside as well: what is refused there too supports no claim.

mod attempts;

use nix::errno::Errno;
use serde::{Deserialize, Serialize};

use super::plan::ProbePlan;
use crate::evidence::{Attempt, Canary, CanaryMode, CanaryStatus, Outcome};

/// Abstract name on which init listens while the canaries run: a live target inside the same namespaces.
pub(super) const INSIDE_SOCKET: &str = "runner-canary-inside";

/// Destination port of the network canaries that the supervisor answers.
const ANSWERED_PORT: u16 = 443;
/// Destination port of the network canaries that it lets through, until the client starts.
pub(super) const CONTINUED_PORT: u16 = 444;

/// Makes one attempt: what the kernel said.
type Try = fn(&ProbePlan) -> Result<(), Errno>;

/// A way out of the network namespace.
struct Way {
    name: &'static str,
    /// Call and address by which the supervisor's record is found.
    syscall: &'static str,
    address: &'static str,
    attempt: fn(u16) -> Result<(), Errno>,
    outside: Option<Try>,
}

/// One other attempt.
struct Probe {
    name: &'static str,
    /// `None`: it must succeed.
    expected: Option<Errno>,
    /// The call and the family with which the supervisor records its refusal, where it is the one to refuse.
    recorded: Option<(&'static str, Option<&'static str>)>,
    inside: Try,
    /// The same attempt made by the runner outside, where that is harmless.
    outside: Option<Try>,
}

/// What one canary observed inside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Observation {
    pub(crate) name: String,
    pub(crate) mode: Mode,
    /// 0 where the call succeeded.
    pub(crate) errno: i32,
}

/// Who is to refuse: [`CanaryMode`] on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    Answered,
    Continued,
}

/// The canary that reaches the stub.
pub(super) const STUB: &str = "stub";
/// A file of the new root that everybody may read by its mode, and that no Landlock rule names.
pub(super) const UNRULED_FILE: &str = "/.canary";
/// Depends on Landlock's scopes, which came with ABI 6.
const ABSTRACT_INSIDE: &str = "abstract-socket-inside";

/// What the namespace says of each: there is no way to anywhere but loopback.
const UNREACHABLE: Errno = Errno::ENETUNREACH;

#[rustfmt::skip]
const WAYS: &[Way] = &[
    Way { name: "tcp4", syscall: "connect", address: "192.0.2.1", attempt: attempts::tcp4, outside: None },
    Way { name: "tcp6", syscall: "connect", address: "2001:db8::1", attempt: attempts::tcp6, outside: Some(attempts::any_ipv6) },
    Way { name: "udp4", syscall: "sendto", address: "192.0.2.1", attempt: attempts::udp4, outside: None },
    Way { name: "udp6", syscall: "sendto", address: "2001:db8::1", attempt: attempts::udp6, outside: Some(attempts::any_ipv6) },
    Way { name: "broadcast", syscall: "sendto", address: "255.255.255.255", attempt: attempts::broadcast, outside: None },
    Way { name: "multicast", syscall: "sendto", address: "224.0.0.251", attempt: attempts::multicast, outside: None },
];

#[rustfmt::skip]
const PROBES: &[Probe] = &[
    succeeds("home", attempts::write_home),
    // The network namespace.
    fails("abstract-socket-outside", Errno::ECONNREFUSED, attempts::abstract_outside, Some(attempts::abstract_outside)),
    // The supervisor.
    answered("raw-socket", Errno::EPERM, ("socket", Some("inet")), attempts::raw, attempts::raw),
    answered("packet-socket", Errno::EAFNOSUPPORT, ("socket", Some("packet")), attempts::packet, attempts::packet_is_possible),
    answered("vsock", Errno::EAFNOSUPPORT, ("socket", Some("vsock")), attempts::vsock, attempts::vsock),
    answered("io-uring", Errno::ENOSYS, ("io_uring_setup", None), attempts::io_uring, attempts::io_uring),
    // The filter.
    fails("ptrace", Errno::EPERM, attempts::trace_init, None),
    fails("unshare", Errno::EPERM, attempts::new_namespace, None),
    fails("setns", Errno::EPERM, attempts::join_namespace, None),
    fails("mount", Errno::EPERM, attempts::mount_something, None),
    fails("terminal-input", Errno::EPERM, attempts::terminal_input, None),
    // The new root and its mounts.
    fails("host-directory", Errno::ENOENT, attempts::outside_directory, Some(attempts::outside_directory)),
    fails("write-root", Errno::EROFS, attempts::write_root, None),
    fails("pathname-socket", Errno::ENOENT, attempts::path_socket, Some(attempts::path_socket)),
    // Landlock.
    fails("landlock-read", Errno::EACCES, attempts::read_unruled, None),
    fails(ABSTRACT_INSIDE, Errno::EPERM, attempts::abstract_inside, None),
    // Init is out of reach.
    fails("init-memory", Errno::EACCES, attempts::init_memory, None),
];

const fn succeeds(name: &'static str, inside: Try) -> Probe {
    Probe {
        name,
        expected: None,
        recorded: None,
        inside,
        outside: None,
    }
}

const fn fails(name: &'static str, expected: Errno, inside: Try, outside: Option<Try>) -> Probe {
    Probe {
        name,
        expected: Some(expected),
        recorded: None,
        inside,
        outside,
    }
}

const fn answered(
    name: &'static str,
    expected: Errno,
    recorded: (&'static str, Option<&'static str>),
    inside: Try,
    outside: Try,
) -> Probe {
    Probe {
        name,
        expected: Some(expected),
        recorded: Some(recorded),
        inside,
        outside: Some(outside),
    }
}

impl Probe {
    fn mode(&self) -> Mode {
        if self.recorded.is_some() {
            Mode::Answered
        } else {
            Mode::Continued
        }
    }
}

/// Makes every attempt inside.
pub(super) fn observe(plan: &ProbePlan) -> Vec<Observation> {
    let mut observed = Vec::new();
    for way in WAYS {
        for (mode, port) in [
            (Mode::Answered, ANSWERED_PORT),
            (Mode::Continued, CONTINUED_PORT),
        ] {
            observed.push(observation(way.name, mode, (way.attempt)(port)));
        }
    }
    observed.extend(
        PROBES
            .iter()
            .map(|probe| observation(probe.name, probe.mode(), (probe.inside)(plan))),
    );
    observed
}

pub(super) fn observation(name: &str, mode: Mode, result: Result<(), Errno>) -> Observation {
    Observation {
        name: name.to_owned(),
        mode,
        errno: result.map_or_else(|errno| errno as i32, |()| 0),
    }
}

/// Names of the canaries that the runner's own attempt outside shows to be refused there as well.
pub(crate) fn refused_outside(plan: &ProbePlan) -> Vec<&'static str> {
    let ways = WAYS.iter().map(|way| (way.name, way.outside));
    let probes = PROBES.iter().map(|probe| (probe.name, probe.outside));
    ways.chain(probes)
        .filter(|(_, outside)| outside.is_some_and(|attempt| attempt(plan).is_err()))
        .map(|(name, _)| name)
        .collect()
}

/// What a verdict on the canaries rests on.
pub(super) struct Ground<'a> {
    pub(super) observed: &'a [Observation],
    /// What the supervisor recorded while they ran.
    pub(super) recorded: &'a [Attempt],
    pub(super) refused_outside: &'a [&'static str],
    /// Landlock's scopes are enforced.
    pub(super) scopes: bool,
}

impl Ground<'_> {
    /// Puts what was observed beside what was expected. A canary that is missing was not held, and neither was
    /// one that the supervisor should have recorded and did not.
    pub(super) fn judge(&self) -> Vec<Canary> {
        let mut canaries = vec![self.canary(STUB, Mode::Continued, None, true)];
        for way in WAYS {
            for (mode, port) in [
                (Mode::Answered, ANSWERED_PORT),
                (Mode::Continued, CONTINUED_PORT),
            ] {
                let wanted = match mode {
                    Mode::Answered => Outcome::Denied(UNREACHABLE),
                    Mode::Continued => Outcome::Allowed,
                };
                let recorded = self.recorded.iter().any(|attempt| {
                    attempt.syscall == way.syscall
                        && attempt.address.as_deref() == Some(way.address)
                        && attempt.port == Some(port)
                        && attempt.outcome == wanted
                });
                canaries.push(self.canary(way.name, mode, Some(UNREACHABLE), recorded));
            }
        }
        canaries.extend(PROBES.iter().map(|probe| {
            let recorded = match (probe.recorded, probe.expected) {
                (Some((syscall, family)), Some(errno)) => self.recorded.iter().any(|attempt| {
                    attempt.syscall == syscall
                        && attempt.family.as_deref() == family
                        && attempt.outcome == Outcome::Denied(errno)
                }),
                (Some(_) | None, _) => true,
            };
            self.canary(probe.name, probe.mode(), probe.expected, recorded)
        }));
        canaries
    }

    fn canary(&self, name: &str, mode: Mode, expected: Option<Errno>, recorded: bool) -> Canary {
        let found = self
            .observed
            .iter()
            .find(|one| one.name == name && one.mode == mode);
        let errno = found.map(|one| one.errno);
        let as_expected = errno == Some(expected.map_or(0, |errno| errno as i32));
        let unscoped = name == ABSTRACT_INSIDE && !self.scopes;
        let without_claim = unscoped || (self.refused_outside.contains(&name) && errno != Some(0));
        let status = match errno {
            Some(_) if without_claim => CanaryStatus::NotApplicable,
            Some(_) if as_expected && recorded => CanaryStatus::Held,
            Some(_) | None => CanaryStatus::NotHeld,
        };
        let observed = match errno {
            None => "missing".to_owned(),
            Some(errno) if as_expected && !recorded => format!("{}, not recorded", text(errno)),
            Some(errno) => text(errno),
        };
        Canary {
            name: name.to_owned(),
            mode: match mode {
                Mode::Answered => CanaryMode::Answered,
                Mode::Continued => CanaryMode::Continued,
            },
            expected: text(expected.map_or(0, |errno| errno as i32)),
            observed,
            status,
        }
    }
}

fn text(errno: i32) -> String {
    if errno == 0 {
        "ok".to_owned()
    } else {
        format!("{:?}", Errno::from_raw(errno))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::AttemptKind;

    fn record(
        syscall: &'static str,
        family: Option<&str>,
        address: Option<&str>,
        port: Option<u16>,
        outcome: Outcome,
    ) -> Attempt {
        Attempt {
            seq: 1,
            at_us: 0,
            kind: AttemptKind::Attempt,
            pid: 3,
            program: String::new(),
            syscall,
            family: family.map(str::to_owned),
            socket_type: None,
            protocol: None,
            address: address.map(str::to_owned),
            port,
            outcome,
            count: 1,
            names: Vec::new(),
        }
    }

    struct Tried {
        observed: Vec<Observation>,
        recorded: Vec<Attempt>,
    }

    fn as_expected() -> Tried {
        let mut observed = vec![observation(STUB, Mode::Continued, Ok(()))];
        let mut recorded = Vec::new();
        for way in WAYS {
            for mode in [Mode::Answered, Mode::Continued] {
                observed.push(observation(way.name, mode, Err(UNREACHABLE)));
            }
            let address = Some(way.address);
            recorded.push(record(
                way.syscall,
                None,
                address,
                Some(ANSWERED_PORT),
                Outcome::Denied(UNREACHABLE),
            ));
            recorded.push(record(
                way.syscall,
                None,
                address,
                Some(CONTINUED_PORT),
                Outcome::Allowed,
            ));
        }
        for probe in PROBES {
            observed.push(observation(
                probe.name,
                probe.mode(),
                probe.expected.map_or(Ok(()), Err),
            ));
            if let (Some((syscall, family)), Some(errno)) = (probe.recorded, probe.expected) {
                recorded.push(record(syscall, family, None, None, Outcome::Denied(errno)));
            }
        }
        Tried { observed, recorded }
    }

    fn judge(tried: &Tried, refused_outside: &[&'static str], scopes: bool) -> Vec<Canary> {
        let Tried { observed, recorded } = tried;
        Ground {
            observed,
            recorded,
            refused_outside,
            scopes,
        }
        .judge()
    }

    fn not_held(canaries: &[Canary]) -> Vec<&str> {
        let broken = canaries
            .iter()
            .filter(|canary| canary.status == CanaryStatus::NotHeld);
        broken.map(|canary| canary.name.as_str()).collect()
    }

    fn status(canaries: &[Canary], name: &str) -> CanaryStatus {
        canaries
            .iter()
            .find(|canary| canary.name == name)
            .unwrap()
            .status
    }

    #[test]
    fn every_canary_is_held_when_errno_and_record_are_the_expected_ones() {
        let canaries = judge(&as_expected(), &[], true);
        assert!(
            canaries
                .iter()
                .all(|canary| canary.status == CanaryStatus::Held),
            "{canaries:?}"
        );
        assert_eq!(canaries.len(), 1 + 2 * WAYS.len() + PROBES.len());
    }

    #[test]
    fn another_errno_is_not_good_enough() {
        for index in 0..as_expected().observed.len() {
            let mut tried = as_expected();
            tried.observed[index].errno = Errno::EXDEV as i32;
            assert_eq!(
                not_held(&judge(&tried, &[], true)),
                [tried.observed[index].name.as_str()]
            );
        }
    }

    #[test]
    fn a_missing_canary_is_not_held() {
        for index in 0..as_expected().observed.len() {
            let mut tried = as_expected();
            let missing = tried.observed.remove(index);
            assert_eq!(not_held(&judge(&tried, &[], true)), [missing.name.as_str()]);
        }
    }

    #[test]
    fn what_the_supervisor_did_not_record_is_not_held() {
        for index in 0..as_expected().recorded.len() {
            let mut tried = as_expected();
            tried.recorded.remove(index);
            assert_eq!(not_held(&judge(&tried, &[], true)).len(), 1);
        }
    }

    #[test]
    fn what_is_refused_outside_as_well_supports_no_claim_but_may_not_succeed_inside() {
        let mut tried = as_expected();
        assert_eq!(
            status(&judge(&tried, &["vsock"], true), "vsock"),
            CanaryStatus::NotApplicable
        );
        tried
            .observed
            .iter_mut()
            .find(|one| one.name == "vsock")
            .unwrap()
            .errno = 0;
        assert_eq!(
            status(&judge(&tried, &["vsock"], true), "vsock"),
            CanaryStatus::NotHeld
        );
    }

    #[test]
    fn without_scopes_the_inner_abstract_socket_supports_no_claim() {
        let mut tried = as_expected();
        tried
            .observed
            .iter_mut()
            .find(|one| one.name == ABSTRACT_INSIDE)
            .unwrap()
            .errno = 0;
        assert_eq!(
            status(&judge(&tried, &[], false), ABSTRACT_INSIDE),
            CanaryStatus::NotApplicable
        );
        assert_eq!(
            status(&judge(&tried, &[], true), ABSTRACT_INSIDE),
            CanaryStatus::NotHeld
        );
    }
}
