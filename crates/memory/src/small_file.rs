//! Files of the operator that are read whole, if they are small.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// The text of a regular file, up to so many bytes; nothing where there is none, or it is no text.
///
/// Longer ones are cut, where a character ends, and the second value says so.
pub(crate) fn read(path: &Path, most: u64) -> io::Result<Option<(String, bool)>> {
    // A pipe would be waited for.
    match std::fs::metadata(path) {
        Ok(found) if found.is_file() => {}
        Ok(_) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    }
    let mut bytes = Vec::new();
    // One byte more than is wanted tells whether there is more, whatever length the file had a
    // moment ago.
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    let is_cut = bytes.len() as u64 > most;
    bytes.truncate(usize::try_from(most).unwrap_or(usize::MAX));
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some((text, is_cut))),
        Err(error) if is_cut && error.utf8_error().error_len().is_none() => {
            let end = error.utf8_error().valid_up_to();
            let mut bytes = error.into_bytes();
            bytes.truncate(end);
            Ok(String::from_utf8(bytes).ok().map(|text| (text, true)))
        }
        Err(_) => Ok(None),
    }
}
