//! Entries of the ledger for calls that the kernel carries out: starts of programs, connections to the stub.

use std::collections::HashSet;
use std::path::Path;

use nix::errno::Errno;
use sys::notify::{self, Notification};

use super::caller::Caller;
use super::ledger::{Called, Connect};
use super::{Supervision, identity, lookup, socket_state};

impl Supervision {
    /// Records a program that execve(2) is about to start. A program that no mount or rule allows to execute is listed
    /// as refused, and a missing one is not listed. Their errno is returned and must be the answer, since another thread
    /// may replace the path before the kernel looks.
    pub(super) fn record_start(
        &mut self,
        notification: &Notification,
        (at, program): (i32, &[u8]),
        arguments: &[Vec<u8>],
        caller: &Caller,
        at_us: u64,
    ) -> Option<Errno> {
        let missing = caller.missing_program(at, program);
        if missing.is_some() {
            if self.lookups {
                let wanted = lookup::executed(notification.thread, at, program);
                self.ledger.lookups.add(wanted, at_us);
            }
            return missing.filter(|_| self.refuses);
        }
        // Landlock rules hold for objects, whatever their path.
        let may_execute = |path: &Path| {
            let is_allowed = |allowed: &HashSet<_>| {
                let mut above = path.ancestors().filter_map(identity);
                above.any(|object| allowed.contains(&object))
            };
            self.executable.as_ref().is_none_or(is_allowed)
        };
        let unexecutable = caller
            .unexecutable(at, program, may_execute)
            .filter(|_| self.refuses);
        let refused = unexecutable.as_ref().map(|_| Errno::EACCES);
        let name = unexecutable.map_or_else(
            || caller.program_name(at, program),
            |path| path.into_os_string().into_encoded_bytes(),
        );
        let called = Called {
            program: &name,
            arguments,
            refused,
        };
        self.ledger.start(called, caller, &self.secrets);
        refused
    }

    /// Records a connection that connect(2) is about to make, after the event loop has read the client's output. A
    /// socket that is connected or connecting makes no new connection.
    pub(super) fn record_connection(
        &mut self,
        notification: &Notification,
        descriptor: i32,
        caller: &Caller,
    ) {
        match socket_state::is_unconnected_tcp(notification.thread, caller, descriptor) {
            Ok(false) => return,
            // Not a TCP socket: connect(2) only sets its destination, or fails.
            Err(Errno::EOPNOTSUPP | Errno::ENOPROTOOPT | Errno::ENOTSOCK | Errno::EBADF) => return,
            Ok(true) => {}
            // The caller was killed, so the call is not made.
            Err(_) if !notify::is_valid(&self.listener, notification.id) => return,
            Err(errno) => self
                .ledger
                .fault(format!("cannot read the state of a socket: {errno}")),
        }
        let lines = self.lines.count();
        self.ledger.connect(Connect {
            at_us: self.clock.elapsed_us(),
            lines,
        });
    }
}
