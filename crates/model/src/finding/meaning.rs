//! Meaning of each check: one sentence, and the key of a case file that it comes from.

/// Meaning of a check for readers without the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// The expectation, in one sentence.
    pub sentence: &'static str,
    /// Key of a case file that sets the expectation, or the nearest key: `expect.requests.rule`. Rules of every
    /// case use the key `name`.
    pub key: &'static str,
}

/// Meaning of an unknown id.
const OTHER: Meaning = Meaning {
    sentence: "The evidence meets the expectation.",
    key: "name",
};

/// Returns the meaning of the check with this id.
pub fn meaning(id: &str) -> Meaning {
    let mut known = MEANINGS.into_iter();
    let found = known.find(|(known, ..)| *known == id);
    found.map_or(OTHER, |(_, key, sentence)| Meaning { sentence, key })
}

/// Lists the stable ids of all checks of a case, in the order of reports.
pub fn ids() -> impl Iterator<Item = &'static str> {
    let all = MEANINGS.iter().map(|(id, ..)| *id);
    all.filter(|id| ![super::BASELINE, super::FAIL_ON].contains(id))
}

#[rustfmt::skip]
const MEANINGS: [(&str, &str, &str); 42] = [
    ("requests/first-and-only",            "expect.requests.rule",                    "The message request is the first request and the only one."),
    ("requests/sequence",                  "expect.requests.rule",                    "The preflight comes first or not at all, then one message request, and no other."),
    ("requests/post-count",                "expect.requests",                         "There is exactly one message request."),
    ("requests/connections",               "expect.requests",                         "Each connection carries complete requests and no other byte."),
    ("requests/query",                     "expect.requests",                         "Requests have only the queries that the profile names."),
    ("headers/api-key-present",            "expect.requests",                         "The message request carries the credential of the run, exactly once and alone, in x-api-key or the header that the profile names."),
    ("headers/authorization-absent",       "expect.requests",                         "The message request carries no authorization header, unless the profile has the credential there."),
    ("headers/user-agent",                 "expect.requests",                         "The client names itself in user-agent, with the version that its init record has."),
    ("headers/beta-families",              "expect.requests",                         "The beta header of the message request names every protocol family of the profile."),
    ("headers/preflight-unauthenticated",  "expect.requests.rule",                    "The preflight carries no credential."),
    ("headers/nothing-else",               "expect.requests",                         "Requests carry only headers that the profile lists, none twice except lists, and the Host of the stub."),
    ("headers/rules",                      "expect.requests",                         "Requests have the headers that their rules require, and none that they forbid."),
    ("body/fields",                        "expect.requests.rule.body.fields",        "The body of the message request has the expected top-level fields, with their types, and no others."),
    ("body/messages-blocks",               "expect.requests.rule.body.user_blocks",   "The body has one user message with the expected number of text blocks."),
    ("body/system-blocks",                 "expect.requests.rule.body.system_blocks", "The system input has the expected number of text blocks."),
    ("body/cache-control",                 "expect.requests.rule.body.cache_control", "The expected blocks carry cache_control, and no others."),
    ("body/tools-empty",                   "expect.requests.rule.body.tools",         "The body's list of tools is empty."),
    ("body/stream",                        "expect.requests.rule.body.stream",        "The message request asks for a stream."),
    ("records/json-lines",                 "expect.records",                          "Each line of standard output is one JSON object."),
    ("records/sequence",                   "expect.records",                          "The records follow the sequence of the specification."),
    ("records/init-fields",                "expect.records",                          "The init record has the public fields, with their types, and only the permission mode, MCP servers, slash commands, agents, skills and plugins of the profile."),
    ("records/tools-empty",                "expect.records.tools",                    "The init record's list of tools is empty."),
    ("records/init-before-post",           "expect.records",                          "The init record is written before the message request."),
    ("records/events-match-provider",      "expect.records.partial_messages",         "Each event of the provider has a record that holds it unchanged; pings and unknown events have a record each or none at all."),
    ("records/assistant-text",             "stub",                                    "The assistant record's text is what the provider sent."),
    ("records/assistant-position",         "expect.records.partial_messages",         "The assistant record comes after the last delta and before the block's stop."),
    ("records/result-success",             "expect.records",                          "The last record reports a successful turn, and the answer was complete."),
    ("records/rules",                      "expect.records.rule",                     "Each record is of a rule, has its fields, and the records of a rule are there as often as it says."),
    ("files/state-file",                   "expect.files",                            "The client leaves its state file."),
    ("files/backup",                       "expect.files",                            "The client leaves one backup of its state file, stamped within the run."),
    ("files/modes",                        "expect.files",                            "The state file and its backup have mode 0600; no directory, and no other file, may be written by others or has a set-uid, set-gid or sticky bit."),
    ("files/nothing-else",                 "expect.files",                            "The client leaves only files of the specification and of the profile."),
    ("files/rules",                        "expect.files",                            "Each file of a rule is there as often as the rule says, with its mode."),
    ("files/no-transcript",                "expect.files.transcript",                 "The client leaves no transcript of the conversation."),
    ("secrets/credential-not-written",     "name",                                    "The credential, in any encoding, appears only in its own header."),
    ("outbound/denied",                    "sandbox",                                 "The kernel refuses calls to any destination but the stub, as probes inside this run show."),
    ("outbound/no-attempts",               "sandbox",                                 "The program makes no attempt at any destination but the stub."),
    ("process/exit-zero",                  "expect.exit",                             "The client ends by itself, with the expected exit code, within its limits."),
    ("process/programs",                   "expect.programs",                         "The client starts no program but its own and those of the rules."),
    ("process/no-survivors",               "sandbox",                                 "No process outlives the program."),
    ("baseline/unchanged",                 "name",                                    "The client behaves exactly as the lock file records."),
    ("audit/fail-on",                      "name",                                    "The audit finds nothing that `--fail-on` names."),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_check_has_a_sentence_of_its_own() {
        let every: Vec<&str> = ids()
            .chain([crate::finding::BASELINE, crate::finding::FAIL_ON])
            .collect();
        let sentences: BTreeSet<&str> = every.iter().map(|id| meaning(id).sentence).collect();
        assert_eq!(sentences.len(), every.len());
        assert!(!sentences.contains(OTHER.sentence));
        for sentence in sentences {
            assert!(sentence.ends_with('.'), "{sentence}");
        }
    }

    #[test]
    fn an_unknown_id_has_a_meaning() {
        assert_eq!(meaning("weather/fine"), OTHER);
    }
}
