//! Entries of the ledger for calls that the kernel carries out: starts of programs, connections to the stub.

use nix::errno::Errno;
use sys::notify::{self, Notification};

use super::caller::Caller;
use super::ledger::Connect;
use super::{Supervision, lookup, socket_state};

impl Supervision {
    /// Records a program that execve(2) is about to start. A missing program is not listed: its errno is returned and
    /// must be the answer, since another thread may create the file before the kernel looks.
    pub(super) fn record_start(
        &mut self,
        notification: &Notification,
        (at, program): (i32, &[u8]),
        arguments: &[Vec<u8>],
        caller: &Caller,
        at_us: u64,
    ) -> Option<Errno> {
        let missing = caller.missing_program(at, program);
        if missing.is_none() {
            let name = caller.program_name(at, program);
            self.ledger.start(&name, arguments, caller, &self.secrets);
        } else if self.lookups {
            let wanted = lookup::executed(notification.thread, at, program);
            self.ledger.lookups.add(wanted, at_us);
        }
        missing
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
        let lines = self.lines.now();
        self.ledger.connect(Connect {
            at_us: self.clock.elapsed_us(),
            lines,
        });
    }
}
