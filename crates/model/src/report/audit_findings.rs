//! Findings of an audit: the one value that every report, the gate of `--fail-on` and the exit code read.

use std::collections::{BTreeMap, BTreeSet};

use scenario::closed_set;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::evidence::{Attempt, Evidence, Exit, Question, Sensitive};
use crate::expected;
use crate::text::count;

closed_set! {
    /// Kind of finding of an audit, and a word of `--fail-on`.
    pub enum FindingKind {
        /// Attempts at a destination other than the stub.
        Attempts = "attempts",
        /// Names asked for.
        Names = "names",
        /// The credential outside of its own header.
        Credential = "credential",
        /// Processes that outlived the program.
        Survivors = "survivors",
        /// Sensitive places that were looked for.
        Sensitive = "sensitive",
    }
}

/// Findings of an audit, by kind. Expected attempts and names are not findings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditFindings {
    /// Number of findings: kinds of which something was found.
    pub count: usize,
    /// The findings in words: `2 attempts, 1 name, credential in stdout`; empty without findings.
    pub summary: String,
    /// Number of attempts, repeated and unlisted ones included.
    pub attempts: u64,
    /// Number of names asked for, each counted once, and of questions that are not listed.
    pub names: u64,
    /// Parts of the evidence that hold the credential: `stdout`, `files`.
    pub credential: Vec<String>,
    /// Number of processes that outlived the program; none if the runner ended it.
    pub survivors: u64,
    /// Sensitive paths, addresses and names; hostile.
    pub sensitive: Vec<String>,
}

impl AuditFindings {
    /// Counts the findings in evidence with its reasons ([`expected::Rules::explain`]).
    pub fn of(evidence: &Evidence) -> Self {
        let mut found = Self {
            attempts: attempts(evidence),
            names: names(evidence),
            credential: credential(evidence),
            survivors: match evidence.exit {
                Exit::Code(_) | Exit::Signal(_) => evidence.survivors.len() as u64,
                Exit::Timeout(_)
                | Exit::OutputLimit
                | Exit::RequestLimit
                | Exit::Interrupted
                | Exit::NotStarted => 0,
            },
            sensitive: sensitive(evidence)
                .into_iter()
                .map(|found| found.place)
                .collect(),
            ..Self::default()
        };
        let words = FindingKind::ALL.into_iter();
        let words: Vec<String> = words.filter_map(|kind| found.words(kind)).collect();
        found.count = words.len();
        found.summary = words.join(", ");
        found
    }

    /// Returns the words of a report for one kind of finding; `None` without a finding.
    pub fn words(&self, kind: FindingKind) -> Option<String> {
        let counted = |number, noun| (number > 0).then(|| count(number, noun));
        match kind {
            FindingKind::Attempts => counted(self.attempts, "attempt"),
            FindingKind::Names => counted(self.names, "name"),
            FindingKind::Credential => {
                let places = self.credential.join(" and ");
                (!places.is_empty()).then(|| format!("credential in {places}"))
            }
            FindingKind::Survivors => counted(self.survivors, "survivor"),
            FindingKind::Sensitive => counted(self.sensitive.len() as u64, "sensitive place"),
        }
    }
}

/// Sensitive place that the program looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SensitivePlace {
    /// Content of the place.
    pub what: Sensitive,
    /// Use of the place: the kind of a lookup, `connect` or `name`.
    pub wanted: &'static str,
    /// Number of uses.
    pub count: u64,
    /// Path, destination or name; hostile.
    pub place: String,
}

/// Lists the sensitive places in the evidence: paths, then addresses and names that are not expected. Each place is
/// listed once.
pub fn sensitive(evidence: &Evidence) -> Vec<SensitivePlace> {
    let paths = evidence.sensitive.iter().map(|path| SensitivePlace {
        what: path.what,
        wanted: path.kind.word(),
        count: path.count,
        place: path.path.clone(),
    });
    let attempts = unexpected_attempts(evidence).filter_map(|attempt| {
        Some(SensitivePlace {
            what: Sensitive::of_attempt(attempt)?,
            wanted: "connect",
            count: attempt.count,
            place: attempt.target(),
        })
    });
    let names = unexpected_names(evidence).filter_map(|question| {
        Some(SensitivePlace {
            what: Sensitive::of_question(question)?,
            wanted: "name",
            count: question.count,
            place: question.name.clone(),
        })
    });
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut listed: Vec<SensitivePlace> = Vec::new();
    for found in paths.chain(attempts).chain(names) {
        let index = *places.entry(found.place.clone()).or_insert(listed.len());
        match listed.get_mut(index) {
            Some(same) => same.count = same.count.saturating_add(found.count),
            None => listed.push(found),
        }
    }
    listed
}

fn attempts(evidence: &Evidence) -> u64 {
    unexpected_attempts(evidence)
        .map(|attempt| attempt.count)
        .fold(evidence.unlisted.attempts(), u64::saturating_add)
}

fn names(evidence: &Evidence) -> u64 {
    let names: BTreeSet<&str> = unexpected_names(evidence)
        .map(|question| question.name.as_str())
        .collect();
    (names.len() as u64).saturating_add(evidence.unlisted.questions)
}

fn unexpected_attempts(evidence: &Evidence) -> impl Iterator<Item = &Attempt> {
    expected::judged(evidence).filter(|attempt| attempt.expected.is_none())
}

fn unexpected_names(evidence: &Evidence) -> impl Iterator<Item = &Question> {
    let names = evidence.names.iter();
    names.filter(|question| question.expected.is_none())
}

/// Names the parts of the evidence that hold the credential, each once, without text of the client.
fn credential(evidence: &Evidence) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for sighting in &evidence.sightings {
        let begins = |start: &&str| sighting.place.starts_with(start);
        let mut known = CREDENTIAL_PLACES.into_iter();
        let found = known.find(|(start, _)| begins(start));
        let part = found.map_or("another place", |(_, part)| part);
        if !parts.iter().any(|listed| listed == part) {
            parts.push(part.to_owned());
        }
    }
    parts
}

/// First words of the place of a sighting, and the part of the evidence.
const CREDENTIAL_PLACES: [(&str, &str); 9] = [
    ("stdout", "stdout"),
    ("stderr", "stderr"),
    ("request ", "requests"),
    ("connection ", "requests"),
    ("arguments of process ", "arguments"),
    ("name asked for: ", "names"),
    ("file ", "files"),
    ("name of the file ", "files"),
    ("target of the link ", "files"),
];

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::evidence::fixture::{case_b, connect, question};
    use crate::evidence::{
        AttemptKind, LookupKind, Outcome, SensitivePath, Sighting, Survivor, Unlisted,
    };

    fn nothing() -> Evidence {
        case_b().evidence
    }

    fn sighting(place: &str) -> Sighting {
        Sighting {
            place: place.to_owned(),
            form: "as written".to_owned(),
        }
    }

    fn summary(evidence: &Evidence) -> (usize, String) {
        let found = AuditFindings::of(evidence);
        (found.count, found.summary)
    }

    #[test]
    fn evidence_without_findings_has_none() {
        assert_eq!(AuditFindings::of(&nothing()), AuditFindings::default());
    }

    #[test]
    fn findings_are_counted_by_kind() {
        let mut evidence = nothing();
        let mut repeated = connect("inet", "192.0.2.1", Some(443));
        repeated.count = 2;
        evidence.attempts.push(repeated);
        evidence.names = vec![question("a.example"), question("a.example")];
        evidence.sightings = vec![sighting("stdout"), sighting("stdout line 2")];
        assert_eq!(
            summary(&evidence),
            (3, "2 attempts, 1 name, credential in stdout".to_owned())
        );
        evidence.sightings.push(sighting("file x"));
        evidence.survivors.push(Survivor {
            pid: 7,
            program: "sleep".to_owned(),
        });
        evidence.sensitive.push(SensitivePath {
            what: Sensitive::Aws,
            path: "/root/.aws".to_owned(),
            kind: LookupKind::Read,
            count: 3,
            at_us: 1,
        });
        assert_eq!(
            summary(&evidence),
            (
                5,
                "2 attempts, 1 name, credential in stdout and files, 1 survivor, 1 sensitive place"
                    .to_owned()
            )
        );
    }

    #[test]
    fn expected_evidence_is_no_finding() {
        let mut evidence = nothing();
        let mut known = connect("inet", "169.254.169.254", Some(80));
        known.expected = Some("asked for".to_owned());
        let mut asked = question("metadata.google.internal");
        asked.expected = Some("asked for".to_owned());
        let way = |kind| Attempt {
            kind,
            outcome: Outcome::Allowed,
            ..connect("inet", "127.0.0.1", Some(53))
        };
        evidence
            .attempts
            .extend([known, way(AttemptKind::Setup), way(AttemptKind::Question)]);
        evidence.names.push(asked);
        assert_eq!(AuditFindings::of(&evidence), AuditFindings::default());
    }

    #[test]
    fn unlisted_calls_are_counted() {
        let mut evidence = nothing();
        evidence.unlisted = Unlisted {
            denied: 5,
            let_through: 1,
            questions: 2,
            ..Unlisted::default()
        };
        assert_eq!(summary(&evidence), (2, "6 attempts, 2 names".to_owned()));
    }

    #[test]
    fn metadata_service_is_a_sensitive_place() {
        let mut evidence = nothing();
        let metadata = connect("inet", "169.254.169.254", Some(80));
        evidence.attempts.extend([metadata.clone(), metadata]);
        evidence.names.push(question("metadata.google.internal"));
        let found = AuditFindings::of(&evidence);
        assert_eq!(
            found.sensitive,
            ["inet:169.254.169.254:80", "metadata.google.internal"]
        );
        assert_eq!(sensitive(&evidence)[0].count, 2);
    }

    #[test]
    fn process_that_the_runner_ended_is_no_survivor() {
        let mut evidence = nothing();
        evidence.survivors.push(Survivor {
            pid: 7,
            program: "sleep".to_owned(),
        });
        assert_eq!(AuditFindings::of(&evidence).survivors, 1);
        evidence.exit = Exit::Timeout(Duration::from_secs(1));
        assert_eq!(AuditFindings::of(&evidence).survivors, 0);
    }
}
