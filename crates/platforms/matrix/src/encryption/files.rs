//! Files in encrypted rooms: a key for each, and a hash of what lies at the homeserver.
//!
//! A file is looked at after all of it was checked, so nobody's changes to it are ever read.

use std::io::{Cursor, Read};

use matrix_sdk_crypto::{AttachmentDecryptor, AttachmentEncryptor, MediaEncryptionInfo};
use serde_json::Value;

use crate::cipher_error::CipherError;

/// The sealed bytes, and what opens them.
pub(crate) fn seal_file(bytes: &[u8]) -> Result<(Vec<u8>, Value), CipherError> {
    let mut reader = Cursor::new(bytes);
    let mut sealed = Vec::with_capacity(bytes.len());
    let mut sealing = AttachmentEncryptor::new(&mut reader);
    sealing
        .read_to_end(&mut sealed)
        .map_err(CipherError::keys)?;
    let key = serde_json::to_value(sealing.finish()).map_err(CipherError::keys)?;
    Ok((sealed, key))
}

/// The bytes of a file, if they are those that were sealed.
pub(crate) fn open_file(sealed: &[u8], key: Value) -> Result<Vec<u8>, CipherError> {
    let key: MediaEncryptionInfo = serde_json::from_value(key).map_err(CipherError::keys)?;
    let mut reader = Cursor::new(sealed);
    let opening = AttachmentDecryptor::new(&mut reader, key);
    let mut opened = Vec::with_capacity(sealed.len());
    let mut opening = opening.map_err(CipherError::keys)?;
    opening
        .read_to_end(&mut opened)
        .map_err(|_| CipherError::File)?;
    Ok(opened)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_changed_is_not_read() {
        let (mut sealed, key) = seal_file(b"the plan").unwrap();
        assert_ne!(sealed, b"the plan");
        assert_eq!(open_file(&sealed, key.clone()).unwrap(), b"the plan");
        sealed[0] ^= 1;
        assert!(open_file(&sealed, key.clone()).is_err());
        let mut other = key;
        other["hashes"] = serde_json::json!({});
        assert!(open_file(&sealed, other).is_err());
    }
}
