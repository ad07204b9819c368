//! Answer to a refused head, which the server never reads.

use scenario::{ErrorType, messages};

use crate::tap::head::HeadError;

/// Returns the whole answer, head and body. The connection closes after it.
pub(crate) fn answer(error: HeadError) -> Vec<u8> {
    let id = messages::new_id("req");
    let status = match error {
        HeadError::Long(_) | HeadError::Sum(_) => "431 Request Header Fields Too Large",
        HeadError::BareLineFeed
        | HeadError::Control
        | HeadError::Grammar(_)
        | HeadError::Border
        | HeadError::TwoFramings
        | HeadError::TwoLengths
        | HeadError::Length
        | HeadError::Coding
        | HeadError::OldCoding
        | HeadError::Many(_) => "400 Bad Request",
    };
    let body = messages::error_body(ErrorType::InvalidRequest, &error.to_string(), &id);
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nrequest-id: {id}\r\ncontent-length: {length}\r\n\
         connection: close\r\n\r\n{body}"
    )
    .into_bytes()
}
