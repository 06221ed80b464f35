//! Any bytes as what the search inside a sandbox found: however they are cut, they say the same.

#![no_main]

use hermetic_fuzz::in_pieces;
use hermetic_search::{MalformedRecord, RecordParser, SearchRecord};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let (whole, pieces) = in_pieces(bytes);
    let at_once = records(&[whole]);
    assert_eq!(records(&pieces), at_once);
    for record in at_once.0 {
        let mut parser = RecordParser::default();
        parser.push(&record.encode());
        assert_eq!(parser.take(), Ok(Some(record)));
    }
});

fn records(pieces: &[&[u8]]) -> (Vec<SearchRecord>, Option<MalformedRecord>) {
    let (mut parser, mut found) = (RecordParser::default(), Vec::new());
    for piece in pieces {
        parser.push(piece);
        loop {
            match parser.take() {
                Ok(Some(record)) => found.push(record),
                Ok(None) => break,
                Err(malformed) => return (found, Some(malformed)),
            }
        }
    }
    (found, None)
}
