//! From what was captured to the evidence: the journal folded, the output cut into records, the trees walked.
//!
//! Runs when nothing of the sandbox is left alive, so nothing that it reads can change under it.

use std::time::{Duration, SystemTime};

use stub::Needle;

use crate::case::Limits;
use crate::clock::Clock;
use crate::collect::Capture;
use crate::collect::files::{self, Bounds, Found};
use crate::evidence::{Evidence, Exit, Gap, GapKind, Request, Root, from_journal};

/// The evidence of one run. Ends the capture: home and temporary directory are gone afterwards.
pub(crate) fn evidence(
    capture: Capture,
    limits: &Limits,
    clock: Clock,
    needle: &Needle,
) -> Evidence {
    let now_us = clock.elapsed_us();
    let served = from_journal(&capture.journal, clock.start_us, capture.canary_peer);
    let before_post = lines_before_post(&served.requests, &capture.barriers);
    let (records, seen_on_stdout) = capture.output.into_records(before_post, now_us, needle);
    let (stderr, seen_on_stderr) = capture.errors.into_stderr(needle);
    let names = capture.questions.finish(capture.exit);
    let mut found = Found::default();
    match capture.trees {
        Some((home, tmp)) => {
            let bounds = Bounds {
                bytes: 2 * limits.home_bytes,
                entries: limits.home_files,
            };
            files::walk(Root::Home, home, needle, bounds, &mut found);
            files::walk(Root::Tmp, tmp, needle, bounds, &mut found);
        }
        None if capture.exit != Exit::NotStarted => {
            let detail = "the home was not handed over".to_owned();
            found.gaps.push(Gap {
                what: GapKind::Files,
                detail,
            });
        }
        None => {}
    }
    let (layers, canaries) = capture
        .isolation
        .map_or_else(Default::default, |isolation| {
            (isolation.layers, isolation.canaries)
        });
    Evidence {
        connections: served.connections,
        requests: served.requests,
        provider_events: served.provider_events,
        records,
        files: found.files,
        stderr,
        sightings: [
            served.sightings,
            seen_on_stdout,
            Vec::from_iter(seen_on_stderr),
            names.sightings,
            found.sightings,
        ]
        .concat(),
        exit: capture.exit,
        attempts: Vec::new(),
        names: names.asked,
        processes: Vec::new(),
        survivors: capture.survivors,
        layers,
        canaries,
        gaps: [capture.gaps, served.gaps, names.gaps, found.gaps].concat(),
        wall: (clock.wall, SystemTime::now()),
        duration: Duration::from_micros(clock.elapsed_us()),
    }
}

/// How many lines stood on standard output when the message request began; 0 where there was none.
fn lines_before_post(requests: &[Request], barriers: &[(u64, usize)]) -> usize {
    requests
        .iter()
        .find(|request| request.is_post())
        .and_then(|post| barriers.iter().find(|(request, _)| *request == post.seq))
        .map_or(0, |(_, lines)| *lines)
}
