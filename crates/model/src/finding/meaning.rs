//! What each check asks, in a sentence, and where a case file says so.

/// A check in words for who has not read the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// What must be so.
    pub sentence: &'static str,
    /// The key of a case file that it comes from, or the nearest: `expect.requests.preflight`. What is the same in
    /// every case stands under the case's `name`.
    pub key: &'static str,
}

/// Of a check of any other id.
const OTHER: Meaning = Meaning {
    sentence: "What the run shows is as it is expected to be.",
    key: "name",
};

/// What the check of this id asks.
pub fn meaning(id: &str) -> Meaning {
    let mut known = MEANINGS.into_iter();
    let found = known.find(|(known, ..)| *known == id);
    found.map_or(OTHER, |(_, key, sentence)| Meaning { sentence, key })
}

/// The stable ids of all checks of a case, in the order of every report.
pub fn ids() -> impl Iterator<Item = &'static str> {
    let all = MEANINGS.iter().map(|(id, ..)| *id);
    all.filter(|id| *id != super::BASELINE)
}

/// Checks that hold for any program, an audited one too; the others need a case.
const FOR_ANY_PROGRAM: [&str; 4] = [
    "secrets/credential-not-written",
    "outbound/denied",
    "outbound/no-attempts",
    "process/no-survivors",
];

/// Whether an audit makes the check of this id.
pub fn holds_for_any_program(id: &str) -> bool {
    FOR_ANY_PROGRAM.contains(&id)
}

#[rustfmt::skip]
const MEANINGS: [(&str, &str, &str); 37] = [
    ("requests/first-and-only",           "expect.requests.preflight",        "The message request is the first request and the only one."),
    ("requests/sequence",                 "expect.requests.preflight",        "The preflight comes first or not at all, then one message request, and no other."),
    ("requests/post-count",               "expect.requests",                  "There is exactly one message request."),
    ("requests/connections",              "expect.requests",                  "Each connection carries whole requests and not one byte beside them."),
    ("requests/query",                    "expect.requests",                  "No request has a query but those that the profile names."),
    ("headers/api-key-present",           "expect.requests",                  "The message request carries the credential of the run, once and nothing else, in x-api-key or the header that the profile names."),
    ("headers/authorization-absent",      "expect.requests",                  "The message request carries no authorization header, unless the profile has the credential there."),
    ("headers/user-agent",                "expect.requests",                  "The client names itself in user-agent, with the version that its init record has."),
    ("headers/beta-families",             "expect.requests",                  "The beta header of the message request names every protocol family of the profile."),
    ("headers/preflight-unauthenticated", "expect.requests.preflight",        "The preflight carries no credential."),
    ("headers/nothing-else",              "expect.requests",                  "Requests carry no header but those that the profile lists, none twice but lists, and the stub's own Host."),
    ("body/fields",                       "expect.body.fields",               "The body of the message request has the expected top-level fields, with their types, and no others."),
    ("body/messages-blocks",              "expect.body.user_blocks",          "The body has one user message with the expected number of text blocks."),
    ("body/system-blocks",                "expect.body.system_blocks",        "The system input has the expected number of text blocks."),
    ("body/cache-control",                "expect.body.cache_control",        "The expected blocks carry cache_control, and no others."),
    ("body/tools-empty",                  "invocation.switches",              "The body's list of tools is empty where the case has the switch no-tools."),
    ("body/stream",                       "expect.body.fields.stream",        "The message request asks for a stream."),
    ("records/json-lines",                "expect.records",                   "Each line of standard output is one JSON object."),
    ("records/sequence",                  "expect.records",                   "The records follow the sequence of the specification."),
    ("records/init-fields",               "expect.records",                   "The init record has the public fields, with their types, and no permission mode, MCP server, slash command, agent, skill or plugin but those of the profile."),
    ("records/tools-empty",               "invocation.switches",              "The init record's list of tools is empty where the case has the switch no-tools."),
    ("records/init-before-post",          "expect.records",                   "The init record is written before the message request."),
    ("records/events-match-provider",     "expect.records.partial_messages",  "Each event of the provider has a record that holds it unchanged; pings and unknown kinds have all theirs or none."),
    ("records/assistant-text",            "stub",                             "The assistant record's text is what the provider sent."),
    ("records/assistant-position",        "expect.records.partial_messages",  "The assistant record stands after the last delta and before the block's stop."),
    ("records/result-success",            "expect.records",                   "The last record says that the turn succeeded, and the answer came whole."),
    ("files/state-file",                  "name",                             "The client leaves its state file."),
    ("files/backup",                      "name",                             "The client leaves one backup of its state file, stamped within the run."),
    ("files/modes",                       "name",                             "The state file and its backup have mode 0600; no directory, and no other file, may be written by others or has a set-uid, set-gid or sticky bit."),
    ("files/nothing-else",                "name",                             "The client leaves no file but those of the specification and of the profile."),
    ("files/no-transcript",               "invocation.switches",              "The client leaves no transcript of the conversation."),
    ("secrets/credential-not-written",    "name",                             "The credential stands nowhere but in its own header, in whatever encoding."),
    ("outbound/denied",                   "sandbox",                          "The kernel itself refuses what leads anywhere but to the stub, tried inside this very run."),
    ("outbound/no-attempts",              "sandbox",                          "The program tries to reach nobody but the stub."),
    ("process/exit-zero",                 "sandbox.limits",                   "The client ends by itself, with exit code 0, within its limits."),
    ("process/no-survivors",              "sandbox",                          "No process outlives the program."),
    ("baseline/unchanged",                "name",                             "The client behaves as the lock file says, no more and no less."),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_check_has_a_sentence_of_its_own() {
        let every: Vec<&str> = ids().chain([crate::finding::BASELINE]).collect();
        let sentences: BTreeSet<&str> = every.iter().map(|id| meaning(id).sentence).collect();
        assert_eq!(sentences.len(), every.len());
        assert!(!sentences.contains(OTHER.sentence));
        for sentence in sentences {
            assert!(sentence.ends_with('.'), "{sentence}");
        }
    }

    #[test]
    fn an_id_that_is_not_known_has_a_meaning_all_the_same() {
        assert_eq!(meaning("weather/fine"), OTHER);
    }
}
