//! The first eight bytes in each direction.

use thiserror::Error;

/// The one version we speak. Any change of a frame or a structure raises it, but a request that is added at
/// the end of its list does not: an earlier warden answers that it does not know it, and goes on.
pub const VERSION: u16 = 3;

pub const LENGTH: usize = 8;

const MAGIC: [u8; 6] = *b"hwardn";

#[derive(Debug, Error, PartialEq, Eq)]
pub enum HelloError {
    #[error("the other end is no warden")]
    NotAWarden,
    #[error("the other end speaks version {theirs}, we speak {VERSION}")]
    Version { theirs: u16 },
}

pub fn hello() -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    bytes[..6].copy_from_slice(&MAGIC);
    bytes[6..].copy_from_slice(&VERSION.to_be_bytes());
    bytes
}

pub fn check(bytes: [u8; LENGTH]) -> Result<(), HelloError> {
    if bytes[..6] != MAGIC {
        return Err(HelloError::NotAWarden);
    }
    match u16::from_be_bytes([bytes[6], bytes[7]]) {
        VERSION => Ok(()),
        theirs => Err(HelloError::Version { theirs }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_hello_is_accepted_and_no_other() {
        assert_eq!(check(hello()), Ok(()));
        assert_eq!(check(*b"SSH-2.0-"), Err(HelloError::NotAWarden));
        let mut newer = hello();
        newer[7] += 1;
        assert_eq!(
            check(newer),
            Err(HelloError::Version {
                theirs: VERSION + 1
            })
        );
    }
}
