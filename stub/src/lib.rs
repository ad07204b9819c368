//! (being written)
pub mod journal;
