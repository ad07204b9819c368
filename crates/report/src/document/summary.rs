//! Facts on the run, and sections on its claims, its lock file, its settings and its rules.

use model::evidence::Arg;
use model::report::{BaselineOutcome, Client, Content, Purpose, Report, Runner, Scope, Stdin};
use model::text::grouped;
use model::time;

use super::{
    Block, Budget, Drift, Fact, LONG, PAGE, Section, Table, Text, client, digest, fact, led, name,
    own, text, word,
};
use crate::claims;
use crate::phrases::{self, duration};

/// Returns the case, the program, its arguments and profile, the sandbox, the time and the runner.
pub(super) fn identity(report: &Report) -> Vec<Fact> {
    let Report {
        client: program,
        case,
        host,
        evidence,
        ..
    } = report;
    let (policy_label, program_label) = match report.purpose {
        Purpose::Judge => ("case", "client"),
        Purpose::Audit => ("policy", "program"),
    };
    let policy = |policy: &model::report::Policy| {
        let source = policy.origin.source.to_string();
        let of = own(", ") + name(source) + ", sha256 ";
        name(&policy.name) + of + digest(&policy.origin.sha256)
    };
    let landlock = match host.landlock_abi {
        0 => "Landlock not tested".to_owned(),
        abi => format!("Landlock ABI {abi}"),
    };
    let suffix = if evidence.layers.is_empty() {
        ", not set up"
    } else {
        ""
    };
    let isolation = format!("isolation {}{suffix}, Linux ", report.tier.word());
    let ran = u64::try_from(evidence.duration.as_micros()).unwrap_or(u64::MAX);
    let content = match &program.content {
        Content::BuiltIn => Text::default(),
        Content::Read(sha256) => own(", sha256 ") + digest(sha256),
        Content::Cached(sha256) => own(", sha256 ") + digest(sha256) + " from the cache",
    };
    let of_program = name(&program.program) + content;
    let mut facts = vec![
        fact(policy_label, policy(case)),
        fact(program_label, of_program + ", " + phrases::exit(evidence)),
        fact(
            "arguments",
            match arguments(&program.args) {
                args if args.is_some() => args,
                _ => own("none"),
            },
        ),
    ];
    facts.extend(program.hidden_directory.as_ref().map(|hidden| {
        let text = own("an empty one, because ") + name(hidden) + " is not shown";
        fact("directory", text)
    }));
    facts.extend(match &program.stdin {
        Stdin::None => None,
        Stdin::Inherited => Some(fact("stdin", "that of runner")),
        Stdin::File(path) => Some(fact("stdin", name(path))),
    });
    facts.extend(
        program
            .profile
            .as_ref()
            .map(|profile| fact("profile", policy(profile))),
    );
    let sandbox = own(isolation) + name(&host.kernel) + " " + name(&host.arch) + ", " + landlock;
    facts.push(fact("sandbox", sandbox));
    facts.extend(
        report
            .tier_because
            .as_ref()
            .map(|because| fact("because", because.as_str())),
    );
    let time = format!("{} from {}", duration(ran), time::rfc3339(evidence.wall.0));
    let Runner {
        version,
        commit,
        build_id,
    } = &report.runner;
    let runner = own(version) + ", commit " + digest(commit) + ", build id " + digest(build_id);
    facts.extend([fact("time", time), fact("runner", runner)]);
    facts
}

/// Joins arguments. Quotation marks keep an argument with blanks apart from several, and are escaped within one.
pub(super) fn arguments(args: &[Arg]) -> Text {
    let quoted = |word: &str| {
        let is_plain = !word.is_empty() && !word.contains([' ', '"']);
        client(if is_plain {
            word.to_owned()
        } else {
            format!("\"{}\"", word.replace('"', "\\\""))
        })
    };
    let measured = |bytes, sha256| own(format!("<{bytes} bytes, sha256 ")) + digest(sha256) + ">";
    args.iter()
        .enumerate()
        .fold(Text::default(), |all, (index, arg)| {
            let arg = match arg {
                Arg::Word(word) => quoted(word),
                Arg::Cut { text, whole } => {
                    quoted(text) + "… of " + measured(whole.bytes, &whole.sha256)
                }
                Arg::Prompt { bytes, sha256 } => measured(*bytes, sha256),
            };
            all + (if index > 0 { " " } else { "" }) + arg
        })
}

/// Lists the digests and the runner's ids in full, for comparison.
pub(super) fn digests(report: &Report) -> Section {
    let Report {
        runner,
        case,
        client,
        ..
    } = report;
    let policies = [Some(case), client.profile.as_ref()].into_iter().flatten();
    let policies = policies.map(|policy| (&policy.name, &policy.origin.sha256));
    let program = client.content.sha256();
    let program = program.map(|sha256| (client.program.as_str(), sha256));
    let policies = policies.map(|(label, sha256)| (label.as_str(), sha256.as_str()));
    let own = [("commit", &*runner.commit), ("build id", &runner.build_id)];
    let facts = program.into_iter().chain(policies).chain(own);
    let facts = facts.map(|(label, id)| fact(label, name(id))).collect();
    Section::new(
        "digests",
        "SHA-256 digests, commit and build id in full",
        "",
        [Block::Facts(Budget::Ours, facts)],
    )
    .only(PAGE)
}

/// Lists the reasons of an unsound run beside the end of the client, which [`super::output::cause`] shows. A client can
/// cause many.
pub(super) fn unsound(report: &Report) -> Option<Section> {
    let no_start = phrases::reason_of_no_start(report);
    let is_other =
        |reason: &&String| !phrases::is_of_end(reason) && no_start != Some(reason.as_str());
    let reasons = report.unsound.iter().filter(is_other);
    let facts = reasons.map(|reason| fact("lost", client(reason))).collect();
    let title = phrases::unsound(report.verdict);
    Section::of_facts("unsound", title, Budget::Client, facts)
}

pub(super) fn claims(report: &Report) -> Section {
    let title = "What this run shows, and what it does not";
    Section::new(
        "claims",
        title,
        "",
        [Block::Claims(claims::with_limits(report))],
    )
}

/// Names the evidence of an audit that no check judges.
pub(super) fn not_judged() -> Section {
    let what = "Requests, records, files, programs and the exit code: an audit has no expectations of them.";
    let fact = fact("not judged", what);
    let blocks = [Block::Facts(Budget::Ours, vec![fact])];
    Section::new("not-judged", "What was not judged", "", blocks)
}

/// Shows the lock file and the drift from it, or the changes made to the file.
pub(super) fn drift(report: &Report) -> Option<Section> {
    let baseline = report.baseline.as_ref()?;
    let title = match baseline.outcome {
        BaselineOutcome::Compared => "Drift from the lock file",
        BaselineOutcome::Updated | BaselineOutcome::Made => "What changed in the lock file",
    };
    let differences = baseline.differences.iter();
    let drift = differences
        .map(|found| (found.clone(), baseline.to_accept(found)))
        .collect();
    let file = fact(
        "lock file",
        name(&baseline.file) + ": " + phrases::lock_file(baseline),
    );
    let number = grouped(baseline.differences.len() as u64);
    let blocks = [
        Block::Facts(Budget::Ours, vec![file]),
        Block::Drift(Drift(drift)),
    ];
    Some(Section::new("baseline", title, number, blocks))
}

/// Lists the variables of the profile, because they may change the client's behaviour.
pub(super) fn settings(report: &Report) -> Option<Section> {
    let Client {
        settings, left_out, ..
    } = &report.client;
    let set = settings.iter().map(|setting| match setting.scope {
        Scope::Always => ("always", setting),
        Scope::Case => ("this case", setting),
    });
    let left_out = left_out
        .iter()
        .map(|setting| ("left out by --plain", setting));
    let table = Table::of(Budget::Ours, set.chain(left_out), |(scope, setting)| {
        let variable = client(format!("{}={}", setting.name, setting.value));
        [
            word("set", scope),
            text("variable", variable),
            led(": ", "reason", client(&setting.reason)),
        ]
    });
    let section = table.section("settings", "Settings in the client's environment")?;
    Some(section.only(LONG))
}

pub(super) fn wider_rules(report: &Report) -> Option<Section> {
    let title = match report.purpose {
        Purpose::Judge => "Rules that are wider than the built-in case",
        Purpose::Audit => "Rules added by the command line",
    };
    let table = Table::of(Budget::Policy, &report.wider_rules, |wider| {
        let rule = text("allowed", client(&wider.rule));
        [rule, led(": ", "reason", client(&wider.reason))]
    });
    table.section("wider-rules", title)
}

#[cfg(test)]
mod tests {
    use model::evidence::Whole;

    use super::*;

    fn text(args: &[Arg]) -> String {
        let Text(spans) = arguments(args);
        spans.iter().map(|span| span.text().into_owned()).collect()
    }

    #[test]
    fn different_arguments_read_differently() {
        let shown = |words: &[&str]| {
            let args = words.iter().map(|word| Arg::Word((*word).into()));
            text(&args.collect::<Vec<_>>())
        };
        assert_eq!(shown(&["--print", "a b", ""]), "--print \"a b\" \"\"");
        assert_eq!(shown(&["a b\" \"c d"]), "\"a b\\\" \\\"c d\"");
        assert_eq!(shown(&["\"a"]), "\"\\\"a\"");
    }

    #[test]
    fn a_cut_argument_says_what_it_is_part_of() {
        let whole = Whole {
            bytes: 300,
            sha256: "ab".repeat(32),
        };
        let cut = Arg::Cut {
            text: "xx".to_owned(),
            whole,
        };
        assert_eq!(text(&[cut]), "xx… of <300 bytes, sha256 abababababab>");
    }
}
