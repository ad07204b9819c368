//! Meaning of a status word, which each format shows by colour or sign.

/// Meaning of a word, such as a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Success.
    Good,
    /// Observation without a judgement.
    Seen,
    /// Failure.
    Bad,
    /// Uncertain result.
    Doubtful,
    /// Label.
    Quiet,
}
