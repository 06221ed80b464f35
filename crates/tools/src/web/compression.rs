//! A compressed body, unpacked no further than its bound.

use std::io::Read;

use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

/// What was unpacked, and whether there was more.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UnpackedBody {
    pub(super) bytes: Vec<u8>,
    pub(super) is_cut: bool,
}

/// What we say that we take.
pub(super) const TAKEN: &str = "gzip, deflate";

/// A body that is broken in the middle gives what came before: a page that was cut at its bound is always so.
pub(super) fn unpack(body: &[u8], encoding: &str, most: usize) -> Result<UnpackedBody, String> {
    match encoding.trim().to_ascii_lowercase().as_str() {
        "" | "identity" => Ok(UnpackedBody {
            bytes: body[..body.len().min(most)].to_vec(),
            is_cut: body.len() > most,
        }),
        "gzip" | "x-gzip" => read(MultiGzDecoder::new(body), most),
        // Servers mean one of two things by this word.
        "deflate" => {
            read(ZlibDecoder::new(body), most).or_else(|_| read(DeflateDecoder::new(body), most))
        }
        other => {
            let other: String = other.chars().take(40).collect();
            Err(format!(
                "it is compressed as {other:?}, which was not asked for"
            ))
        }
    }
}

fn read(decoder: impl Read, most: usize) -> Result<UnpackedBody, String> {
    let mut bytes = Vec::new();
    // One more than is kept tells whether there is more.
    let mut bounded = decoder.take(most as u64 + 1);
    let outcome = bounded.read_to_end(&mut bytes);
    if outcome.is_err() && bytes.is_empty() {
        return Err("its compression is broken".to_owned());
    }
    let is_cut = outcome.is_err() || bytes.len() > most;
    bytes.truncate(most);
    Ok(UnpackedBody { bytes, is_cut })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn what_servers_send_is_unpacked() {
        let whole = |bytes: &[u8]| {
            Ok(UnpackedBody {
                bytes: bytes.to_vec(),
                is_cut: false,
            })
        };
        assert_eq!(unpack(b"plain", "", 100), whole(b"plain"));
        assert_eq!(unpack(&gzip(b"page"), "GZIP", 100), whole(b"page"));
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::best());
        zlib.write_all(b"page").unwrap();
        assert_eq!(
            unpack(&zlib.finish().unwrap(), "deflate", 100),
            whole(b"page")
        );
        let mut raw = DeflateEncoder::new(Vec::new(), Compression::best());
        raw.write_all(b"page").unwrap();
        assert_eq!(
            unpack(&raw.finish().unwrap(), "deflate", 100),
            whole(b"page")
        );
    }

    #[test]
    fn a_bomb_ends_at_the_bound() {
        let bomb = gzip(&vec![b'a'; 20 << 20]);
        assert!(bomb.len() < 100_000);
        let unpacked = unpack(&bomb, "gzip", 1000).unwrap();
        assert!(unpacked.is_cut && unpacked.bytes.len() == 1000);
        let twice = unpack(&gzip(&bomb), "gzip", 1 << 20).unwrap();
        assert_eq!(twice.bytes, bomb, "what is packed twice is unpacked once");
    }

    #[test]
    fn what_is_broken_is_kept_as_far_as_it_goes_or_told() {
        let text: Vec<u8> = (0..20_000_u32).flat_map(u32::to_le_bytes).collect();
        let packed = gzip(&text);
        let half = unpack(&packed[..packed.len() / 2], "gzip", 1 << 20).unwrap();
        assert!(half.is_cut && text.starts_with(&half.bytes) && !half.bytes.is_empty());
        assert!(unpack(b"not gzip", "gzip", 100).is_err());
        assert!(unpack(b"x", "br", 100).unwrap_err().contains("br"));
    }
}
