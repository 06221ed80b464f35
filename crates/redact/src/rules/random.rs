//! Whether a run of characters was drawn by a generator or put together by a person.
//!
//! Names in code change between letters, capitals and digits at the seams of their words; what a
//! generator draws changes all the time. Counting those changes needs no dictionary and no logarithm.

/// A token is judged by its beginning.
const LOOKED_AT: usize = 128;

/// The kinds of characters in a token. Only letters and digits count.
#[derive(Clone, Copy, Default)]
struct TokenMakeup {
    total: usize,
    digits: usize,
    upper: usize,
    lower: usize,
    hex: usize,
    /// Places where one kind follows another. A capital that opens a word is part of it.
    changes: usize,
    /// Letters of what may be a word: four and more, small behind the first, with a vowel.
    wordy: usize,
    distinct: u32,
}

/// Whether it looks drawn, with at least so many letters and digits.
pub(super) fn is_random(token: &[u8], least: usize) -> bool {
    let token = &token[..token.len().min(LOOKED_AT)];
    if token.len() < least || is_path(token) {
        return false;
    }
    let made = TokenMakeup::of(token);
    if made.total < least || made.distinct < 8 || made.total * 4 < token.len() * 3 {
        return false;
    }
    let letters = made.upper + made.lower;
    if made.hex == made.total && (made.upper == 0 || made.lower == 0) {
        return made.total >= 24
            && letters * 8 >= made.total
            && made.digits * 8 >= made.total
            && made.changes * 5 >= made.total;
    }
    if made.upper >= 2 && made.lower >= 2 {
        // A short name with a number in it has a few seams as well.
        let share = if made.total < 32 { 3 } else { 2 };
        return made.wordy * share < made.total
            && !is_camel_name(token)
            && (made.digits >= 1 && made.changes * 5 >= made.total
                || made.total >= 12 && made.changes * 4 >= made.total
                || made.total >= 24 && made.changes * 6 >= made.total);
    }
    made.digits * 12 >= made.total
        && letters * 6 >= made.total
        && made.changes * 5 >= made.total
        && words(token) * 3 < made.total
}

/// `PtpV2OverUdpIPv4EventMsgReceiveHw`: words that each begin with a capital make up most of it.
fn is_camel_name(token: &[u8]) -> bool {
    const LEAST_WORDS: usize = 3;
    if !token.iter().all(u8::is_ascii_alphanumeric) {
        return false;
    }
    let (mut words, mut letters) = (0, 0);
    for part in token.chunk_by(|_, next| !next.is_ascii_uppercase()) {
        let small = part
            .iter()
            .skip(1)
            .take_while(|byte| byte.is_ascii_lowercase())
            .count();
        if part[0].is_ascii_uppercase() && small >= 2 {
            words += 1;
            letters += small + 1;
        }
    }
    // What is drawn has such a word now and then, and never so many.
    words >= LEAST_WORDS && letters * 3 >= token.len() * 2
}

/// How many letters stand in words that something divides from the rest: `healthy-67bf8c4686-mbl2j`.
fn words(token: &[u8]) -> usize {
    token
        .split(|byte| b"_-.".contains(byte))
        .filter(|part| part.len() >= 6 && part.len() < token.len())
        .filter(|part| part.iter().all(u8::is_ascii_alphabetic))
        .map(<[u8]>::len)
        .sum()
}

/// What kinds of characters a token mixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CharacterMix {
    /// Capitals, small letters and digits.
    Cases,
    /// Letters of one case, beyond those of hexadecimal, and digits.
    LettersAndDigits,
    /// Digits of hexadecimal, which checksums are made of.
    Hex,
    Letters,
}

pub(super) fn mixture(token: &[u8]) -> CharacterMix {
    let made = TokenMakeup::of(&token[..token.len().min(LOOKED_AT)]);
    if made.digits == 0 {
        CharacterMix::Letters
    } else if made.hex == made.total && (made.upper == 0 || made.lower == 0) {
        CharacterMix::Hex
    } else if made.upper >= 2 && made.lower >= 2 {
        CharacterMix::Cases
    } else {
        CharacterMix::LettersAndDigits
    }
}

/// `550e8400-e29b-41d4-a716-446655440000`: an id far more often than a secret.
pub(super) fn is_uuid(token: &[u8]) -> bool {
    token.len() == 36
        && token.iter().enumerate().all(|(index, byte)| match index {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Slashes between words. Those of base64 stand between pieces that look drawn themselves.
fn is_path(token: &[u8]) -> bool {
    let slashes = token.iter().filter(|byte| **byte == b'/').count();
    if slashes == 0 {
        return false;
    }
    let longest = token
        .split(|byte| *byte == b'/')
        .max_by_key(|part| part.len())
        .unwrap_or_default();
    token.starts_with(b"/") && slashes > 1 || longest.len() < 8 || !is_random(longest, 6)
}

impl TokenMakeup {
    fn of(token: &[u8]) -> Self {
        #[derive(Clone, Copy, PartialEq)]
        enum CharacterKind {
            Digit,
            Upper,
            Lower,
            Other,
        }
        let mut made = Self::default();
        let mut seen = 0_u64;
        let mut last = CharacterKind::Other;
        // The run of letters that may be a word, and whether it has a vowel.
        let (mut run, mut vowel) = (0, false);
        for byte in token {
            let kind = match byte {
                b'0'..=b'9' => CharacterKind::Digit,
                b'A'..=b'Z' => CharacterKind::Upper,
                b'a'..=b'z' => CharacterKind::Lower,
                _ => CharacterKind::Other,
            };
            let letter = matches!(kind, CharacterKind::Upper | CharacterKind::Lower);
            let goes_on =
                kind == last || kind == CharacterKind::Lower && last == CharacterKind::Upper;
            // A word is small letters, with a capital before them at the most.
            if !letter || kind == CharacterKind::Upper || last == CharacterKind::Digit {
                made.close_run(run, vowel);
                (run, vowel) = (0, false);
            }
            if letter {
                run += 1;
                vowel |= b"aeiouyAEIOUY".contains(byte);
            }
            if kind != CharacterKind::Other {
                made.total += 1;
                seen |= 1 << (byte & 63);
                made.hex += usize::from(byte.is_ascii_hexdigit());
                made.changes += usize::from(last != CharacterKind::Other && !goes_on);
            }
            match kind {
                CharacterKind::Digit => made.digits += 1,
                CharacterKind::Upper => made.upper += 1,
                CharacterKind::Lower => made.lower += 1,
                CharacterKind::Other => {}
            }
            last = kind;
        }
        made.close_run(run, vowel);
        made.distinct = seen.count_ones();
        made
    }

    fn close_run(&mut self, run: usize, vowel: bool) {
        if run >= 4 && vowel {
            self.wordy += run;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_generator_draws_is_told_from_what_a_person_names() {
        for drawn in [
            "5po8TFGawiYNCc1ct4ofWkBqzIfA6IeO",
            "axlzvcf9m7jyyts833f9gmtcpqe5b26o",
            "b91280c63e1571ad928d52947cc31a14",
            "K7SOW2B8QH9QE435NLH07PH22XL4YOPG",
            "wJalrXUtnFEMIbK7MDENGbPxRfiCYzQkLm",
            "w8-p59rc70q0unyupknadu5sr8bf5us04mpt",
        ] {
            assert!(is_random(drawn.as_bytes(), 20), "{drawn}");
        }
        for named in [
            "getElementByIdAndBase64EncodeIt",
            "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
            "inactive-user-2-token-for-tests",
            "x86_64-unknown-linux-gnu-musl-1",
            "2023-05-18T14:32:10.123456Z0000",
            "kubernetes-sigs/controller-runtime/v0-15",
            "1234567890123456789012345678",
            "aaaaaaaaaaaaaaaaaaaa1111111111A",
            "abcdefghijklmnopqrstuvwxyz012345",
            "/usr/lib/x86_64-linux-gnu/libc6/a1b2",
        ] {
            assert!(!is_random(named.as_bytes(), 20), "{named}");
        }
    }
}
