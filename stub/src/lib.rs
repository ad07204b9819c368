//! A loopback Messages provider that journals what each connection carried.
//!
//! ```text
//! socket ─► connection ─► tap ─► journal          what was read, understood from the bytes
//!               │ ▲
//!               ▼ │                               only what follows the grammar, once the gate is open
//!           HTTP server ─► app ─► script        the answer, as the scenario says
//!                 ▲                   ▼
//!                 └────── handover ───┘         piece by piece, each when the one before is taken
//! ```
//!
//! The rooms: [`scenario`] what is answered · [`journal`] the wire of the evidence · [`serve()`] one run,
//! start to end · [`secret`] the credential and its disguises · [`shape`] JSON without its text ·
//! [`limits`] what a client may cost. The crate knows nothing of sandboxes, cases or verdicts.

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
mod shared;
mod tap;

pub use barrier::MAX_HOLD;
pub use command::main;
pub use held::{Held, HeldBytes};
pub use limits::Limits;
pub use serve::{ServeError, Setup, serve, serve_until};
