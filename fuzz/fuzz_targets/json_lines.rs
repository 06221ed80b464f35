//! Any bytes as lines of JSON-RPC, from an MCP server or an agent: however they are cut, the lines are the same, and
//! values are not counted too low.

#![no_main]

use hermetic_fuzz::in_pieces;
use hermetic_tools::json_rpc::{LineCutter, has_more_values};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

/// Short, so that inputs of a fuzzer are beyond it too.
const LONGEST: usize = 256;

fuzz_target!(|bytes: &[u8]| {
    let (whole, pieces) = in_pieces(bytes);
    let (at_once, is_cut_off) = lines(&[whole]);
    let (cut, is_cut_off_too) = lines(&pieces);
    assert_eq!(is_cut_off, is_cut_off_too);
    assert_eq!(at_once, cut);
    assert!(
        at_once
            .iter()
            .all(|line| line.len() <= LONGEST && !line.contains(&b'\n'))
    );

    for line in &at_once {
        if let Ok(value) = serde_json::from_slice::<Value>(line) {
            let values = count(&value);
            assert!(
                values < 2 || has_more_values(line, values - 2),
                "{values} values"
            );
        }
    }
});

/// The lines, and whether a line was too long.
fn lines(pieces: &[&[u8]]) -> (Vec<Vec<u8>>, bool) {
    let (mut cutter, mut lines) = (LineCutter::up_to(LONGEST), Vec::new());
    for piece in pieces {
        cutter.push(piece);
        loop {
            match cutter.next_line() {
                Ok(Some(line)) => lines.push(line.to_vec()),
                Ok(None) => break,
                Err(_) => return (lines, true),
            }
        }
    }
    (lines, false)
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(values) => values.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum(),
        _ => 0,
    }
}
