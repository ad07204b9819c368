//! Dry runs: a case and an audit go through a run's own steps, with a client of this executable. Each layer of the
//! sandbox has a probe, so that what works here works in a run.

use std::ffi::OsStr;
use std::fs;

use clap::Parser as _;
use model::case::Tier;
use model::evidence::{
    Canary, CanaryStatus, Evidence, Exit, FileWatch, Layer, LayerNeed, LayerStatus,
};
use model::finding::Verdict;
use model::report::Purpose;
use model::text::count;
use sandbox::error::Step;
use sys::process::OWN_FILE;

use super::audited::{LOOK, TRIAL_ARGUMENT};
use super::probe::{Need, Outcome, Probe, Refusal, at_step};
use crate::advice::Advice;
use crate::cli::{Cli, Command};
use crate::collect::Failure;
use crate::error_text::{chain, errno_in};
use crate::run::{self, Collected};

/// Case B with the default isolation.
pub(super) fn case() -> Vec<Probe> {
    of_case(&["case-b"])
}

/// Case B with isolation `inherited`.
pub(super) fn inherited() -> Vec<Probe> {
    of_case(&["case-b", "--isolation=inherited"])
}

fn of_case(words: &[&str]) -> Vec<Probe> {
    let collected = match collect(words.iter().map(OsStr::new)) {
        Ok(collected) => collected,
        Err(refusal) => return vec![of_every_run(refusal)],
    };
    let passed_over = collected.passed_over.iter();
    let mut probes: Vec<Probe> = passed_over
        .map(|one| whole_run(one.tier, Err(one.error.clone().into())))
        .collect();
    let (tier, evidence) = (collected.tier, &collected.evidence);
    probes.push(whole_run(tier, outcome(&collected)));
    // Isolation `inherited` has no namespaces by definition, and its report says so in a layer.
    let is_tested = |layer: &&Layer| tier != Tier::Inherited || layer.name != "namespaces";
    let layers = evidence.layers.iter().filter(is_tested);
    probes.extend(layers.map(|layer| of_layer(tier, layer)));
    let lost = |canary: &&Canary| canary.status == CanaryStatus::NotHeld;
    probes.extend(evidence.canaries.iter().filter(lost).map(|canary| {
        let Canary {
            expected, observed, ..
        } = canary;
        let text = format!("expected {expected}, found {observed}");
        let id = format!("canary-{}", canary.name);
        let what = (&*id, "a forbidden call of the canary");
        Probe::new(what, Some(tier), Need::Required, Err(Refusal::Wrong(text)))
    }));
    probes
}

/// An audit of this executable, and the evidence that only audits have.
pub(super) fn audit() -> Vec<Probe> {
    let part = |id: &str, what: &str, outcome| Probe::new((id, what), None, Need::Audit, outcome);
    let whole = |outcome| part("audit", "an audit with shown directories", outcome);
    let own = at_step(fs::read_link(OWN_FILE), Step::StartStage, OWN_FILE);
    let collected = own.and_then(|own| {
        let words = ["audit", "--"].map(OsStr::new);
        let words = words.into_iter().chain([own.as_os_str()]);
        collect(words.chain([TRIAL_ARGUMENT, LOOK].map(OsStr::new)))
    });
    let collected = match collected {
        Ok(collected) => collected,
        Err(refusal) => return vec![whole(Err(refusal))],
    };
    let evidence = &collected.evidence;
    let mut probes = vec![whole(outcome(&collected))];
    if probes.iter().any(Probe::works) {
        let lookups = lookups(collected.tier, evidence);
        probes.push(part(
            "audit-lookups",
            "paths that a program looks up",
            lookups,
        ));
        let watch = watch(evidence.file_watch);
        probes.push(part("audit-watch", "names of removed files", watch));
    }
    probes
}

fn lookups(tier: Tier, evidence: &Evidence) -> Outcome {
    match (evidence.lookups.len(), tier) {
        (_, Tier::Inherited) => Err(Refusal::Untried(
            "isolation inherited records no lookups".to_owned(),
        )),
        (0, Tier::Namespace) => Err(Refusal::Wrong("no lookup was recorded".to_owned())),
        (number, Tier::Namespace) => Ok(format!("{} recorded", count(number, "path"))),
    }
}

fn watch(watch: FileWatch) -> Outcome {
    match watch {
        FileWatch::Whole => Ok("fanotify reports every name".to_owned()),
        FileWatch::BestEffort => Ok("best effort, without fanotify".to_owned()),
        FileWatch::Cut(cut) => Err(Refusal::Wrong(cut.words())),
    }
}

/// Makes one run up to its evidence; `words` are those of the command line.
fn collect<'w>(words: impl Iterator<Item = &'w OsStr>) -> Result<Collected, Refusal> {
    let search_path = std::env::var_os("PATH");
    let cli = Cli::try_parse_from([OsStr::new("runner")].into_iter().chain(words));
    let resolved = cli.map(|cli| cli.resolve(search_path.as_deref()));
    let request = match resolved {
        Ok(Ok(Command::Run(request))) => request,
        Ok(Ok(_)) => return Err(Refusal::Untried("not a run".to_owned())),
        Ok(Err(error)) => return Err(before_set_up(&error, None)),
        Err(error) => return Err(before_set_up(&error, None)),
    };
    run::for_evidence(&request).map_err(|error| before_set_up(&error, error.advice()))
}

fn before_set_up(error: &(dyn std::error::Error + 'static), advice: Option<Advice>) -> Refusal {
    let text: Vec<String> = chain(error).map(|error| error.to_string()).collect();
    Refusal::Run {
        text: text.join(": "),
        errno: errno_in(error),
        advice,
    }
}

fn of_every_run(refusal: Refusal) -> Probe {
    let what = ("run", "preparation of a run");
    Probe::new(what, None, Need::Required, Err(refusal))
}

fn whole_run(tier: Tier, outcome: Outcome) -> Probe {
    let what = format!("a run with isolation {}", tier.word());
    Probe::new((tier.word(), &what), Some(tier), Need::Required, outcome)
}

/// Result of a run: its client was sealed, did its work, and was judged.
fn outcome(collected: &Collected) -> Outcome {
    let evidence = &collected.evidence;
    match &collected.failure {
        None if collected.verdict == Verdict::Passed => {
            let layers = evidence.layers.iter();
            let layers = layers.filter(|layer| layer.status == LayerStatus::Enforced);
            let canaries = evidence.canaries.iter();
            let held = canaries.filter(|canary| canary.status == CanaryStatus::Held);
            Ok(format!(
                "passed; {} enforced, {} of the canary held",
                count(layers.count(), "layer"),
                count(held.count(), "probe")
            ))
        }
        None => {
            if let Exit::Signal(signal) = evidence.exit {
                return Err(Refusal::Killed(signal));
            }
            let gaps = evidence.gaps.iter().map(|gap| gap.detail.as_str());
            let gaps: Vec<&str> = gaps.collect();
            let verdict = collected.verdict.word();
            Err(Refusal::Run {
                text: format!("{verdict}: {}", gaps.join("; ")),
                errno: None,
                advice: None,
            })
        }
        Some(Failure::SetUp(error)) => Err(error.clone().into()),
        Some(failure @ (Failure::NotSealed(_) | Failure::NotExecuted(_))) => Err(Refusal::Run {
            text: failure.to_string(),
            errno: match failure {
                Failure::NotExecuted(errno) => Some(*errno),
                Failure::SetUp(_) | Failure::NotSealed(_) => None,
            },
            advice: failure.advice(Purpose::Judge),
        }),
    }
}

fn of_layer(tier: Tier, layer: &Layer) -> Probe {
    let words = layer.name.split(|byte: char| !byte.is_alphanumeric());
    let words = words.filter(|word| !word.is_empty());
    let id = words.collect::<Vec<_>>().join("-").to_lowercase();
    let need = match layer.need {
        LayerNeed::Required => Need::Required,
        LayerNeed::IfOffered => Need::Used,
    };
    let outcome = match layer.status {
        LayerStatus::Enforced => Ok(layer.detail.clone()),
        LayerStatus::Partial | LayerStatus::Absent => Err(Refusal::Run {
            text: layer.detail.clone(),
            errno: None,
            advice: None,
        }),
    };
    Probe::new((&id, &layer.name), Some(tier), need, outcome)
}
