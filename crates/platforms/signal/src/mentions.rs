//! Mentions: a placeholder in the text, and beside it who is meant.
//!
//! Positions count UTF-16 units. What stands there is put in as words, because a model and a command
//! both read words; a mention of us at the beginning is only how we were called and falls away.

use crate::envelope::{SignalAddress, SignalMention};

/// What stands in a text where somebody is mentioned.
const PLACEHOLDER: char = '\u{fffc}';

/// The text with names in it.
pub(crate) fn in_words(text: &str, mentions: &[SignalMention], us: &SignalAddress) -> String {
    let mut words = String::with_capacity(text.len());
    let mut unit = 0;
    // The end of a mention whose letters are being left out.
    let mut left_out = 0;
    for letter in text.chars() {
        if let Some(mention) = mentions.iter().find(|mention| mention.start == unit) {
            // Never more than the placeholder: a sender could name a length that hides words.
            left_out = match letter {
                PLACEHOLDER => unit + mention.length.min(1),
                _ => left_out,
            };
            put(&mut words, mention, us, letter);
        } else if unit >= left_out && letter != PLACEHOLDER {
            words.push(letter);
        }
        unit += letter.len_utf16();
    }
    words
}

fn put(words: &mut String, mention: &SignalMention, us: &SignalAddress, letter: char) {
    let address = mention.address();
    let is_us = address.as_ref().is_some_and(|address| address.is(us));
    let calls_us = is_us && words.trim().is_empty();
    if let (Some(address), false) = (&address, calls_us) {
        let name = address.number.as_deref().unwrap_or(address.name());
        words.push('@');
        words.push_str(name);
    }
    if letter != PLACEHOLDER {
        words.push(letter);
    }
}

pub(crate) fn name_us(mentions: &[SignalMention], us: &SignalAddress) -> bool {
    let mut addresses = mentions.iter().filter_map(SignalMention::address);
    addresses.any(|address| address.is(us))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const US: &str = "+4915100000001";
    const OTHER: &str = "+4915100000002";

    fn read(text: &str, mentions: Value) -> String {
        let mentions: Vec<SignalMention> = serde_json::from_value(mentions).unwrap();
        let us = SignalAddress::new(None, Some(US.to_owned())).unwrap();
        in_words(text, &mentions, &us).trim().to_owned()
    }

    fn of(number: &str, start: usize) -> Value {
        json!({ "name": number, "number": number, "uuid": null, "start": start, "length": 1 })
    }

    #[test]
    fn names_stand_where_they_were_put() {
        let both = json!([of(US, 0), of(OTHER, 11)]);
        assert_eq!(
            read("\u{fffc} 😀 hello \u{fffc}!", both),
            format!("😀 hello @{OTHER}!")
        );
        assert_eq!(read("\u{fffc} /status", json!([of(US, 0)])), "/status");
        assert_eq!(
            read("ask \u{fffc}", json!([of(US, 4)])),
            format!("ask @{US}")
        );
    }

    #[test]
    fn a_mention_hides_no_words() {
        let wide = json!([{ "number": US, "uuid": null, "start": 0, "length": 100 }]);
        assert_eq!(read("\u{fffc} rm -r /", wide), "rm -r /");
        let astray = json!([of(OTHER, 2), of(OTHER, 500)]);
        assert_eq!(read("ab cd", astray), format!("ab@{OTHER} cd"));
        assert_eq!(read("a\u{fffc}b", json!([])), "ab");
    }
}
