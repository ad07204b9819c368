//! Questions to the resolver inside the sandbox, as the resolver reports them: each name and type once, with a
//! count.
//!
//! Names compare without regard to case and are shown in lower case. The credential is searched for in three forms
//! of a name: as asked, in lower case (the host of a URL is lowered before a lookup), and joined across the dots.
//! A name that holds the credential only across the dots is not shown at all.

use std::collections::BTreeMap;
use std::future::pending;
use std::os::fd::OwnedFd;

use model::evidence::{Exit, Gap, GapKind, MAX_QUESTIONS, Question, Sighting};
use model::secret::{Form, REPLACEMENT, SecretScanner};
use nix::errno::Errno;
use sandbox::dns::Asked;
use sandbox::message::{self, FromResolver};
use tokio::io::unix::AsyncFd;

/// Replacement for a name that holds a user's value across its dots.
const HIDDEN_ACROSS: &str = "<value of a variable>";

/// Questions of one run so far.
#[derive(Debug)]
pub(crate) struct Questions {
    secrets: SecretScanner,
    /// Scanner for lower case, built at the first question: most runs have none.
    lowercase: Option<SecretScanner>,
    asked: Vec<Question>,
    /// Index into `asked`.
    index: BTreeMap<Asked, usize>,
    sightings: Vec<Sighting>,
    /// Number of questions beyond the bound, or lost by the resolver.
    missing: u64,
    /// Number from [`FromResolver::Ended`]; `None` until the resolver has sent its last message.
    datagrams: Option<u64>,
}

/// Questions of a whole run.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// Questions in the order of their first occurrence.
    pub(crate) asked: Vec<Question>,
    pub(crate) sightings: Vec<Sighting>,
    /// Number of questions that are not in `asked`.
    pub(crate) unlisted: u64,
    /// Number of datagrams to and from the resolver; `None` if the resolver was lost.
    pub(crate) datagrams: Option<u64>,
    pub(crate) gaps: Vec<Gap>,
}

impl Questions {
    pub(crate) fn new(secrets: &SecretScanner) -> Self {
        Self {
            secrets: secrets.clone(),
            lowercase: None,
            asked: Vec::new(),
            index: BTreeMap::new(),
            sightings: Vec::new(),
            missing: 0,
            datagrams: None,
        }
    }

    /// Handles one message.
    pub(crate) fn push(&mut self, message: FromResolver) {
        match message {
            FromResolver::Asked { asked, count } => self.count(&asked, count),
            FromResolver::Ended { unheard, datagrams } => {
                self.missing += unheard;
                self.datagrams = Some(datagrams);
            }
        }
    }

    fn count(&mut self, asked: &Asked, count: u64) {
        let (name, form) = self.shown(&asked.name);
        let kind = asked.kind.clone();
        let odd = asked.odd.clone();
        let key = Asked { name, kind, odd };
        if let Some(known) = self.index.get(&key).and_then(|at| self.asked.get_mut(*at)) {
            known.count += count;
            return;
        }
        if self.asked.len() == MAX_QUESTIONS {
            self.missing += count;
            return;
        }
        if let Some(form) = form {
            self.sightings.push(Sighting {
                place: format!("name asked for: {}", key.name),
                form: form.to_string(),
            });
        }
        if let Some(form) = key.odd.as_ref().and_then(|odd| odd.credential.as_ref()) {
            let place = if key.name.is_empty() {
                "datagram to the resolver that is no query".to_owned()
            } else {
                format!("datagram to the resolver, after the name {}", key.name)
            };
            let form = form.clone();
            self.sightings.push(Sighting { place, form });
        }
        self.asked.push(Question {
            name: key.name.clone(),
            kind: key.kind.clone(),
            odd: key.odd.as_ref().map(|odd| odd.what.clone()),
            count,
            expected: None,
        });
        self.index.insert(key, self.asked.len() - 1);
    }

    /// Returns the name in lower case with the credential redacted, and the form in which the credential was
    /// found.
    fn shown(&mut self, name: &str) -> (String, Option<Form>) {
        let exact = &self.secrets;
        let lowercase = self.lowercase.get_or_insert_with(|| exact.in_lower_case());
        let lower = exact.redact(name).to_ascii_lowercase();
        let shown = lowercase.redact(&lower);
        let found = exact
            .find(name.as_bytes())
            .or_else(|| lowercase.find(lower.as_bytes()));
        if found.is_some() {
            return (shown, found);
        }
        let joined = name.replace('.', "");
        let across = exact
            .find(joined.as_bytes())
            .or_else(|| lowercase.find(joined.to_ascii_lowercase().as_bytes()));
        match across {
            Some(form) => (REPLACEMENT.to_owned(), Some(form)),
            // Values of the user's variables can be split over labels as well.
            None if lowercase.redact(&joined.to_ascii_lowercase())
                != joined.to_ascii_lowercase()
                && shown == name.to_ascii_lowercase() =>
            {
                (HIDDEN_ACROSS.to_owned(), None)
            }
            None => (shown, None),
        }
    }

    /// Returns the questions of the run. If there was a client, missing questions are gaps.
    pub(crate) fn finish(self, exit: Exit) -> Names {
        let mut missing = Vec::new();
        if self.missing > 0 {
            let detail = format!(
                "{} questions for names are not listed: more than {MAX_QUESTIONS} names, or too many at once",
                self.missing
            );
            missing.push((GapKind::Cut, detail));
        }
        if self.datagrams.is_none() && exit != Exit::NotStarted {
            let detail = "the resolver ended without its last report, so questions may be missing"
                .to_owned();
            missing.push((GapKind::Attempts, detail));
        }
        let gap = |(what, detail)| Gap { what, detail };
        Names {
            asked: self.asked,
            sightings: self.sightings,
            unlisted: self.missing,
            datagrams: self.datagrams,
            gaps: missing.into_iter().map(gap).collect(),
        }
    }
}

/// Reads the resolver's next message. Returns `None` after the resolver closed its socket or failed. The future is
/// never ready without a socket.
pub(super) async fn next(socket: Option<&AsyncFd<OwnedFd>>) -> Option<FromResolver> {
    let Some(socket) = socket else {
        return pending().await;
    };
    loop {
        let mut guard = socket.readable().await.ok()?;
        match message::receive(socket.get_ref()) {
            Err(Errno::EAGAIN) => guard.clear_ready(),
            Err(Errno::EINTR) => {}
            Ok(received) => return received.map(|(message, _)| message),
            Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use sandbox::dns::Odd;

    use super::*;

    const SECRET: &str = "runner-key-0123456789ABCDEF";

    /// Returns the result of these questions, with a resolver that ended normally.
    fn names(asked: &[(&str, &str, u64)]) -> Names {
        let mut questions = Questions::new(&SecretScanner::new(SECRET).unwrap());
        for (name, kind, count) in asked {
            let asked = Asked {
                name: (*name).to_owned(),
                kind: (*kind).to_owned(),
                odd: None,
            };
            questions.push(FromResolver::Asked {
                asked,
                count: *count,
            });
        }
        questions.push(FromResolver::Ended {
            unheard: 0,
            datagrams: 0,
        });
        questions.finish(Exit::Code(0))
    }

    fn listed(names: &Names) -> Vec<(&str, &str, u64)> {
        let row = |one| {
            let Question {
                name, kind, count, ..
            }: &Question = one;
            (name.as_str(), kind.as_str(), *count)
        };
        names.asked.iter().map(row).collect()
    }

    #[test]
    fn a_name_is_counted_by_type_and_without_regard_to_case() {
        let found = names(&[
            ("b.Example", "A", 1),
            ("a.example", "A", 2),
            ("B.example", "A", 3),
            ("b.example", "AAAA", 1),
        ]);
        let expected = [
            ("b.example", "A", 4),
            ("a.example", "A", 2),
            ("b.example", "AAAA", 1),
        ];
        assert_eq!(listed(&found), expected);
        assert!(found.gaps.is_empty() && found.sightings.is_empty());
    }

    #[test]
    fn the_credential_in_a_name_is_found_and_replaced() {
        let lowercase = format!("x-{}.example", SECRET.to_ascii_lowercase());
        let across = format!("{}.{}.example", &SECRET[..9], &SECRET[9..]);
        for (name, shown) in [
            (format!("{SECRET}.example"), "<credential>.example"),
            (lowercase, "x-<credential>.example"),
            (across, "<credential>"),
        ] {
            let found = names(&[(&name, "A", 1), (&name, "A", 1)]);
            assert_eq!(listed(&found), [(shown, "A", 2)]);
            let places: Vec<_> = found.sightings.iter().map(|one| &one.place).collect();
            assert_eq!(places, [&format!("name asked for: {shown}")]);
        }
    }

    #[test]
    fn an_odd_datagram_is_a_question_of_its_own_and_its_credential_a_sighting() {
        let mut questions = Questions::new(&SecretScanner::new(SECRET).unwrap());
        let odd = |credential: Option<&str>| {
            Some(Odd {
                what: "class 3, 27 bytes".to_owned(),
                credential: credential.map(str::to_owned),
            })
        };
        for (name, odd) in [
            ("a.example", None),
            ("A.example", odd(None)),
            ("a.example", odd(None)),
            ("a.example", odd(Some("hexadecimal"))),
            ("", odd(Some("as written"))),
        ] {
            let (name, kind) = (name.to_owned(), "A".to_owned());
            let asked = Asked { name, kind, odd };
            questions.push(FromResolver::Asked { asked, count: 1 });
        }
        let found = questions.finish(Exit::Code(0));
        let expected = [
            ("a.example", "A", 1),
            ("a.example", "A", 2),
            ("a.example", "A", 1),
            ("", "A", 1),
        ];
        assert_eq!(listed(&found), expected);
        assert_eq!(found.asked[0].odd, None);
        assert_eq!(found.asked[1].odd.as_deref(), Some("class 3, 27 bytes"));
        let places = found
            .sightings
            .iter()
            .map(|one| (one.place.as_str(), one.form.as_str()));
        let expected = [
            (
                "datagram to the resolver, after the name a.example",
                "hexadecimal",
            ),
            ("datagram to the resolver that is no query", "as written"),
        ];
        assert_eq!(Vec::from_iter(places), expected);
    }

    #[test]
    fn a_value_of_the_users_in_a_name_is_replaced_and_no_finding() {
        let secrets = SecretScanner::new(SECRET)
            .unwrap()
            .hiding([("TOKEN", "Hidden-0123")]);
        let mut questions = Questions::new(&secrets);
        for name in [
            "hidden-0123.example",
            "Hid.den-0123.example",
            "other.example",
        ] {
            let asked = Asked {
                name: name.to_owned(),
                kind: "A".to_owned(),
                odd: None,
            };
            questions.push(FromResolver::Asked { asked, count: 1 });
        }
        let names = questions.finish(Exit::NotStarted);
        let shown: Vec<_> = listed(&names).iter().map(|(name, ..)| *name).collect();
        let expected = ["<value of TOKEN>.example", HIDDEN_ACROSS, "other.example"];
        assert_eq!(shown, expected);
        assert!(names.sightings.is_empty());
    }

    #[test]
    fn names_beyond_the_bound_are_a_gap() {
        let many: Vec<String> = (0..MAX_QUESTIONS + 2)
            .map(|name| name.to_string())
            .collect();
        let asked: Vec<_> = many.iter().map(|name| (name.as_str(), "A", 2)).collect();
        let found = names(&asked);
        assert_eq!(found.asked.len(), MAX_QUESTIONS);
        assert_eq!(found.gaps.len(), 1);
        assert!(found.gaps[0].detail.starts_with("4 questions"));
        assert_eq!((found.gaps[0].what, found.unlisted), (GapKind::Cut, 4));
    }

    #[test]
    fn a_resolver_that_did_not_end_is_a_gap_unless_nobody_could_ask() {
        let lost = || Questions::new(&SecretScanner::new(SECRET).unwrap());
        assert_eq!(lost().finish(Exit::Code(0)).gaps.len(), 1);
        assert_eq!(lost().finish(Exit::NotStarted).gaps.len(), 0);
    }
}
