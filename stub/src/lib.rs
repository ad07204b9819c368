//! (being written)
pub mod journal;
pub mod limits;
pub mod scenario;
pub mod secret;
mod serve;

pub use limits::Limits;
pub use scenario::Scenario;
pub use secret::Needle;
pub use serve::{ServeError, Setup, serve, serve_until};
