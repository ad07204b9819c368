//! Report whose facts are compared: the document, and the same as JSON values, to which the rules apply.

use model::evidence::{CanaryStatus, Exit, GapKind, LayerNeed, LayerStatus};
use model::finding::{self, Finding, Status, Verdict};
use model::report::document::{Document, DocumentError};
use serde_json::Value;

/// Most values of a document. A body of the largest size that the stub accepts has three million.
const MAX_VALUES: usize = 8_000_000;

/// Gaps in evidence that is not compared, because it depends on the load of the host.
const NOT_COMPARED: [GapKind; 2] = [GapKind::Lookups, GapKind::Order];

/// Report that was read back.
#[derive(Debug)]
pub struct Report {
    /// The checked document.
    pub document: Document<'static>,
    /// All of its values, with keys that this version does not know.
    pub(super) value: Value,
}

impl Report {
    /// Parses a document.
    ///
    /// # Errors
    /// The first fault of the document, with its place.
    pub fn parse(bytes: &[u8]) -> Result<Self, DocumentError> {
        let document = Document::parse(bytes, MAX_VALUES)?;
        let value = serde_json::from_slice(bytes).map_err(DocumentError::NotJson)?;
        Ok(Self { document, value })
    }

    /// Reasons why the run is incomplete, so that a missing fact proves nothing; empty for a complete one.
    ///
    /// The reasons come from the layers, probes, gaps and exit, and not from the verdict alone: the file may have been
    /// edited, and a verdict covers several faults. A failed comparison with a lock file is no reason: it is a fault of
    /// that file.
    pub fn incomplete(&self) -> Vec<String> {
        let Document {
            isolation,
            client,
            evidence,
            ..
        } = &self.document;
        let mut reasons = Vec::new();
        if isolation.layers.is_empty() {
            reasons.push("no layer of its sandbox was verified".to_owned());
        }
        let lost = isolation.layers.iter().filter(|layer| {
            layer.need == LayerNeed::Required && layer.status != LayerStatus::Enforced
        });
        reasons.extend(lost.map(|layer| {
            let (name, status) = (&layer.name, layer.status.word());
            format!("a layer of its sandbox is {status}: {name}")
        }));
        if isolation.canaries.is_empty() {
            reasons.push("no canary was tried".to_owned());
        }
        let canaries = isolation.canaries.iter();
        let leaks = canaries.filter(|canary| canary.status == CanaryStatus::NotHeld);
        reasons.extend(leaks.map(|canary| format!("a probe did not hold: {}", canary.name)));
        match client.exit {
            Exit::NotStarted => reasons.push("its client was never started".to_owned()),
            Exit::Interrupted => reasons.push("it was interrupted".to_owned()),
            Exit::Code(_)
            | Exit::Signal(_)
            | Exit::Timeout(_)
            | Exit::OutputLimit
            | Exit::RequestLimit => {}
        }
        let gaps = evidence.gaps.iter();
        let gaps = gaps.filter(|gap| !NOT_COMPARED.contains(&gap.what));
        reasons.extend(gaps.map(|gap| {
            let (what, detail) = (gap.what.word(), &gap.detail);
            format!("its {what} are incomplete: {detail}")
        }));
        let is_errored = self.document.verdict == Verdict::Errored;
        if is_errored && reasons.is_empty() && !self.only_the_gates() {
            reasons.push("its verdict is errored".to_owned());
        }
        reasons
    }

    /// Checks that the verdict is errored only because of the options `--baseline` and `--fail-on`. With another failed
    /// check the verdict of a case would be failed, so an errored verdict beside one means a fault of the run itself.
    fn only_the_gates(&self) -> bool {
        let Document {
            checks, findings, ..
        } = &self.document;
        let with = |status: Status| checks.iter().filter(move |check| check.status == status);
        let is_gate = |check: &Finding| [finding::BASELINE, finding::FAIL_ON].contains(&&*check.id);
        with(Status::Errored).next().is_some()
            && with(Status::Errored).all(is_gate)
            && (findings.is_some() || with(Status::Failed).next().is_none())
            && with(Status::Passed).next().is_some()
    }
}
