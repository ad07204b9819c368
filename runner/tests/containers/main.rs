//! The images in real engines: contents, result of each way to start them, unreachable endpoints and remains.
//! `.ci/containers` starts the engines, builds the images and runs these tests.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "all of this is test code, the functions beside the tests too"
)]

mod engine;
mod images;
mod killed;
mod matrix;
mod neighbours;
mod place;
mod recipes;
#[path = "../integration/readme/text.rs"]
mod text;
