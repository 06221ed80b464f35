//! JSON web tokens: three or five pieces of base64url between dots, or two where the signature was cut.

use crate::byte_class::ByteClass;
use crate::window::{RuleMatch, TextAhead};

pub(super) fn look(ahead: TextAhead<'_>) -> RuleMatch {
    // `{"` in base64 begins like this.
    if !ahead.is(0, "eyJ")? && !ahead.is(0, "ewo")? {
        return Ok(None);
    }
    let mut end = ahead.run(0, ByteClass::Token)?;
    if end < 10 {
        return Ok(None);
    }
    // The second piece is JSON as well.
    let two = ahead.is(end, ".eyJ")?;
    let mut pieces = 1;
    while pieces < 5 && ahead.at(end)? == Some(b'.') {
        end = ahead.run(end + 1, ByteClass::Token)?;
        pieces += 1;
    }
    Ok(((pieces >= 3 || two) && end >= 36).then_some(0..end))
}
