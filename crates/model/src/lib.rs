//! Values of a run, as types: the task, the evidence, the findings and the report.
//!
//! | module | values |
//! |---|---|
//! | [`case`], [`profile`], [`audit`], [`policy`] | the task of a run, parsed from policy files, and their common parts |
//! | [`journal`], [`shape`], [`secret`] | what the stub received, without texts and credentials |
//! | [`endpoint`] | endpoints of the provider, by the path of a request |
//! | [`evidence`] | the evidence of one run |
//! | [`expected`] | evidence that a policy lists as expected |
//! | [`finding`] | results of checks, and the verdict |
//! | [`report`], [`difference`] | the contents of every report |
//! | [`fleet`] | the summary of several runs |
//! | [`layout`] | paths and ids inside the sandbox |
//! | [`schema`] | JSON Schemas of these types |
//! | [`text`], [`escape`], [`quote`] | hostile text: bounded, escaped, quoted |
//! | [`digest`], [`time`] | SHA-256 and RFC 3339 |
//!
//! This crate reads no file and makes no system call.

pub use scenario::closed_set;

pub mod audit;
pub mod case;
pub mod difference;
pub mod digest;
pub mod endpoint;
pub mod escape;
pub mod evidence;
pub mod expected;
pub mod finding;
pub mod fleet;
pub mod journal;
pub mod layout;
pub mod policy;
pub mod profile;
pub mod quote;
pub mod report;
pub mod schema;
pub mod secret;
pub mod shape;
pub mod text;
pub mod time;
pub mod wire;
