//! Table of all classes, in the order of the report.

use super::class::Class;
use super::{files, kernel, mounts, names, network, processes, sockets};

const FAMILIES: [&[Class]; 7] = [
    network::CLASSES,
    names::CLASSES,
    sockets::CLASSES,
    processes::CLASSES,
    files::CLASSES,
    mounts::CLASSES,
    kernel::CLASSES,
];

/// All classes, in the order of the report.
pub fn classes() -> impl Iterator<Item = &'static Class> {
    FAMILIES.into_iter().flatten()
}
