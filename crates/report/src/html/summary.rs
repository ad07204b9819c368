//! Summary sections: program and isolation, reasons of an unsound run, claims, settings, wider rules.

use maud::{Markup, html};
use model::report::{Arg, Policy, Purpose, Report};
use model::report::{Scope, Setting};
use model::time;

use super::budget::{Budget, Column};
use super::frame::Section;
use super::text::{bytes, code, digest, duration};
use crate::claims::{self, Strength};
use crate::html::text::ClientText;
use crate::phrases;

/// Draws the program, case, profile, isolation, host and time.
pub(super) fn identity(report: &Report) -> Markup {
    let Report {
        client,
        host,
        case,
        evidence,
        ..
    } = report;
    let (policy_label, program_label) = match report.purpose {
        Purpose::Judge => ("Case", "Client"),
        Purpose::Audit => ("Policy", "Program"),
    };
    let landlock = match host.landlock_abi {
        0 => "Landlock not tested".to_owned(),
        abi => format!("Landlock ABI {abi}"),
    };
    html! {
        dl.identity {
            (fact(program_label, html! { (code(&client.program)) " " (digest(&client.sha256)) }))
            (fact("End", html! { (phrases::exit(evidence)) }))
            (fact(policy_label, html! {
                (code(&case.name)) ", " (ClientText(&phrases::source(&case.origin.source))) " " (digest(&case.origin.sha256))
            }))
            @if let Some(Policy { name, origin }) = &client.profile {
                (fact("Profile", html! {
                    (code(name)) ", " (ClientText(&phrases::source(&origin.source))) " " (digest(&origin.sha256))
                }))
            }
            (fact("Isolation", html! {
                (report.tier.word())
                @if evidence.layers.is_empty() { ", not set up" }
                @if let Some(because) = &report.tier_because { span.because { (ClientText(because)) } }
            }))
            (fact("Host", html! { "Linux " (ClientText(&host.kernel)) " " (ClientText(&host.arch)) ", " (landlock) }))
            (fact("Time", html! {
                (duration(u64::try_from(evidence.duration.as_micros()).unwrap_or(u64::MAX)))
                " from " span.moment { (time::rfc3339(evidence.wall.0)) }
            }))
            (fact("Runner", html! { (ClientText(&report.runner.version)) " " (digest(&report.runner.sha256)) }))
            @if !client.args.is_empty() {
                div.wide { dt { "Arguments" } dd.arguments { (arguments(&client.args)) } }
            }
        }
        (digests(report))
    }
}

/// Draws the digests in full, for comparison.
fn digests(report: &Report) -> Markup {
    let Report {
        runner,
        case,
        client,
        ..
    } = report;
    let policy = |policy: &Policy| (policy.name.clone(), policy.origin.sha256.clone());
    let mut all = vec![
        (client.program.clone(), client.sha256.clone()),
        policy(case),
    ];
    all.extend(client.profile.as_ref().map(policy));
    all.push(("runner".to_owned(), runner.sha256.clone()));
    html! {
        details {
            summary { "SHA-256 in full" }
            dl.digests {
                @for (name, sha256) in &all {
                    dt { (ClientText(name)) } dd { (code(sha256)) }
                }
            }
        }
    }
}

fn fact(name: &str, value: Markup) -> Markup {
    html! { div { dt { (name) } dd { (value) } } }
}

/// Draws each argument separately, so that one cannot look like two.
pub(super) fn arguments(args: &[Arg]) -> Markup {
    html! {
        @for (index, arg) in args.iter().enumerate() {
            @if index > 0 { " " }
            @match arg {
                Arg::Word(word) if word.is_empty() => code { "\"\"" },
                Arg::Word(word) => (code(word)),
                Arg::Prompt { bytes: length, sha256 } => {
                    span.hidden { "a prompt of " (bytes(*length)) " " (digest(sha256)) }
                },
            }
        }
    }
}

/// Draws the reasons of an unsound run, with a size budget, because a client can cause many.
pub(super) fn unsound(report: &Report) -> Option<Section> {
    let reasons = &report.unsound;
    if reasons.is_empty() {
        return None;
    }
    let list = Budget::CLIENT.list(reasons, |reason| code(reason));
    let title = phrases::unsound(report.verdict);
    Some(Section::new(
        "unsound",
        title,
        html! { div.alarm { (list) } },
    ))
}

/// Draws the claims by strength, refuted ones first.
pub(super) fn claims(report: &Report) -> Section {
    let all = claims::claims(report);
    let of = |strength: Strength| {
        let with = all.iter().filter(move |claim| claim.strength == strength);
        with.map(|claim| claim.text.as_str())
    };
    let open: Vec<&str> = of(Strength::NotProved)
        .chain(claims::further_not_proved(report))
        .collect();
    let body = html! {
        div.claims {
            (claim_list("bad", "✕", "Not so", &of(Strength::Refuted).collect::<Vec<_>>()))
            (claim_list("good", "✓", "Proved", &of(Strength::Proved).collect::<Vec<_>>()))
            (claim_list("seen", "•", "Seen", &of(Strength::Seen).collect::<Vec<_>>()))
            (claim_list("open", "?", "Not proved", &open))
        }
    };
    Section::new("claims", "What this run shows, and what it does not", body)
}

fn claim_list(class: &str, sign: &str, title: &str, claims: &[&str]) -> Markup {
    html! {
        @if !claims.is_empty() {
            div class=(class) {
                h3 { span.sign aria-hidden="true" { (sign) } " " (title) }
                (Budget::OURS.list(claims, |claim| html! { (ClientText(claim)) }))
            }
        }
    }
}

/// Draws the variables that the profile set, because they may change the client's behaviour.
pub(super) fn settings(report: &Report) -> Option<Section> {
    let set = report.client.settings.iter().map(|setting| {
        let scope = match setting.scope {
            Scope::Always => "set always",
            Scope::Case => "set for this case",
        };
        (scope, setting)
    });
    let left_out = report.client.left_out.iter();
    let rows: Vec<(&str, &Setting)> = set
        .chain(left_out.map(|setting| ("left out by --plain", setting)))
        .collect();
    if rows.is_empty() {
        return None;
    }
    let columns = [
        Column::Text("variable"),
        Column::Word("scope"),
        Column::Text("reason"),
    ];
    let body = Budget::OURS.table(columns, &rows, |(scope, setting)| {
        let variable = format!("{}={}", setting.name, setting.value);
        [
            code(&variable),
            html! { (scope) },
            html! { (ClientText(&setting.reason)) },
        ]
    });
    let title = "Settings in the client's environment";
    Some(Section::new("settings", title, body).with_note(rows.len().to_string()))
}

pub(super) fn wider_rules(report: &Report) -> Option<Section> {
    let rules = &report.wider_rules;
    if rules.is_empty() {
        return None;
    }
    let title = match report.purpose {
        Purpose::Judge => "Rules that are wider than the built-in case",
        Purpose::Audit => "Rules added by the command line",
    };
    let columns = [Column::Text("allowed"), Column::Text("reason")];
    let body = Budget::OURS.table(columns, rules, |wider| {
        [code(&wider.rule), html! { (ClientText(&wider.reason)) }]
    });
    Some(Section::new("wider-rules", title, body).with_note(rules.len().to_string()))
}

/// Draws the notes on reading the page.
pub(super) fn reading() -> Markup {
    html! {
        p {
            "Times are milliseconds on one monotonic clock, from the start of the run. Text of the client is shown
             unchanged, except characters that move, hide or turn text: those are shown as "
            code { "\\u{…}" }
            ". Credentials and prompts are never shown. This page has no script and loads no file."
        }
    }
}
