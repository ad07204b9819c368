//! (being written)
pub mod journal;
pub mod scenario;
