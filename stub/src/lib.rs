//! A loopback Messages provider that journals what each connection carried.
//!
//! ```text
//! socket ─► connection ─► tap ─► journal          the parsed bytes of the client
//!               │ ▲
//!               ▼ │                               well-formed requests, once the barrier released them
//!           HTTP server ─► app ─► script          the answer of the scenario
//!                 ▲                 ▼
//!                 └─── respond ─────┘             piece by piece, each after the one before was written
//! ```
//!
//! [`serve()`] is one run from start to end; [`limits`] bounds the cost of a client. The crate `scenario` holds
//! the answers; `model` holds the journal's entries, the secret scanner and the shapes of JSON. The crate knows
//! no sandbox, case or verdict.

pub mod limits;

mod app;
mod barrier;
mod command;
mod connection;
mod held;
mod listener;
mod recorder;
mod refusal;
mod respond;
mod serve;
mod tap;

pub use barrier::MAX_HOLD;
pub use command::main;
pub use held::{Held, Sockets};
pub use limits::Limits;
pub use serve::{ServeError, Setup, serve, serve_until};
