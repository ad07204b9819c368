//! Clients that abuse their sandbox: a complete verdict, bounded memory, and no remains.
//!
//! The fixture `abusive-client` first performs all of case B, so a run fails only by the abuse.

mod bounded;
mod ends;
mod floods;
mod memory;
mod printed;
mod processes;
mod spellings;
mod together;
mod trees;

pub(crate) use bounded::Abuse;

/// Checks that are errored with incomplete standard output, besides the two checks of its lines.
const WITHOUT_RECORDS: &[&str] = &[
    "headers/user-agent",
    "records/init-fields",
    "records/tools-empty",
    "records/init-before-post",
    "records/events-match-provider",
    "records/assistant-text",
    "records/assistant-position",
    "records/result-success",
    "secrets/credential-not-written",
];

/// Checks that are errored if a file was not read.
pub(crate) const WITHOUT_FILES: &[&str] = &[
    "files/state-file",
    "files/backup",
    "files/modes",
    "files/no-transcript",
    "secrets/credential-not-written",
];

/// One test for each line, `name: "abuse" with limit = value => failed, errored;`.
macro_rules! abuses {
    ($($name:ident: $abuse:literal $(with $limit:ident = $value:literal)* => $failed:expr, $errored:expr;)*) => {
        $(
            #[test]
            fn $name() {
                crate::needs_sandbox!();
                let abuse = crate::abuse::Abuse::of($abuse);
                $(let abuse = abuse.limit(stringify!($limit), stringify!($value));)*
                abuse.run().assert_found(&$failed, $errored);
            }
        )*
    };
}
use abuses;
