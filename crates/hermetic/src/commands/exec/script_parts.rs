//! A long script in parts that can each be followed to its end.
//!
//! What judges commands gives up on a script that does too much, and asks. A yes that was given beforehand would
//! then cover whatever stands behind enough padding. No part says what the whole means; what is refused in one
//! of them is refused.

/// Ends of commands in one part: far fewer than are followed.
const PART_ENDS: usize = 50;

/// Nothing for a script that is short enough to be followed as a whole.
pub(super) fn script_parts(script: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut begin, mut ends, mut before) = (0, 0, b' ');
    for (at, byte) in script.bytes().enumerate() {
        // A line that goes on in the next is not cut in two.
        let is_end = matches!(byte, b'\n' | b';' | b'&' | b'|') && before != b'\\';
        before = byte;
        ends += usize::from(is_end);
        if is_end && ends == PART_ENDS {
            parts.push(&script[begin..=at]);
            (begin, ends) = (at + 1, 0);
        }
    }
    if !parts.is_empty() {
        parts.push(&script[begin..]);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_the_whole_and_each_is_short() {
        assert!(script_parts("echo one; echo two\n").is_empty());
        let padded = format!("{}rm -rf \\\n/\n", ":;".repeat(120));
        let parts = script_parts(&padded);
        assert_eq!(parts.concat(), padded);
        assert_eq!(parts.len(), 3);
        assert!(parts[2].ends_with("rm -rf \\\n/\n"), "{parts:?}");
    }
}
