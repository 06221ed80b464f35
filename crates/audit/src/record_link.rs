//! What the chain needs to know of a record, read without keeping the rest of it.
//!
//! Whoever verifies a record of a million lines does not look at what they say. The rest is still read by the
//! same parser, with the same bounds: a line that would not be read as a record is not counted as one.

use std::borrow::Cow;
use std::fmt;

use hermetic_types::Timestamp;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::AuditRecord;
use crate::digest::RecordDigest;
use crate::witness::PublishedHead;

/// A record's place in the chain.
#[derive(Debug)]
pub(crate) struct RecordLink {
    pub(crate) seq: u64,
    pub(crate) prev: RecordDigest,
    pub(crate) mark: EventMark,
}

/// What kind of event it is, as far as that matters to the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EventMark {
    Resumed,
    /// It vouches for bytes that are no record.
    Mended {
        bytes: u64,
        sha256: String,
    },
    /// It tells where another chain stood.
    Witnessed(PublishedHead),
    Other,
}

/// The fields that tell one kind of event from another.
#[derive(Default)]
struct MarkFields<'a> {
    kind: Option<&'a str>,
    bytes: Option<u64>,
    sha256: Option<&'a str>,
    chain: Option<&'a str>,
    head: Option<&'a str>,
    seal: Option<&'a str>,
}

impl RecordLink {
    pub(crate) fn of(record: &AuditRecord) -> Self {
        let said = |name: &str| record.event.get(name);
        let text = |name: &str| said(name).and_then(|value| value.as_str());
        Self {
            seq: record.seq,
            prev: record.prev,
            mark: EventMark::new(&MarkFields {
                kind: text("kind"),
                bytes: said("bytes").and_then(serde_json::Value::as_u64),
                sha256: text("sha256"),
                chain: text("chain"),
                head: text("head"),
                seal: text("seal"),
            }),
        }
    }
}

impl EventMark {
    fn new(fields: &MarkFields<'_>) -> Self {
        match (fields.kind, fields.bytes, fields.sha256) {
            (Some("resumed"), ..) => Self::Resumed,
            (Some("mended"), Some(bytes), Some(sha256)) => Self::Mended {
                bytes,
                sha256: sha256.to_owned(),
            },
            (Some("witnessed"), ..) => fields.published().map_or(Self::Other, Self::Witnessed),
            _ => Self::Other,
        }
    }

    pub(crate) fn vouches_for(&self, scrap: &[u8]) -> bool {
        matches!(self, Self::Mended { bytes, sha256 }
            if *bytes == scrap.len() as u64
                && sha256.as_bytes() == RecordDigest::of(scrap).hex())
    }
}

impl MarkFields<'_> {
    fn published(&self) -> Option<PublishedHead> {
        Some(PublishedHead {
            chain: self.chain?.parse().ok()?,
            head: self.head?.parse().ok()?,
            seal: self.seal?.parse().ok()?,
        })
    }
}

impl<'de> Deserialize<'de> for RecordLink {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The fields of an `AuditRecord`, so that the same lines are records.
        #[derive(Deserialize)]
        struct RecordFields {
            seq: u64,
            #[serde(rename = "at")]
            _at: Timestamp,
            prev: RecordDigest,
            event: EventMark,
        }
        let RecordFields {
            seq, prev, event, ..
        } = RecordFields::deserialize(deserializer)?;
        Ok(Self {
            seq,
            prev,
            mark: event,
        })
    }
}

impl<'de> Deserialize<'de> for EventMark {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EventFields;

        impl<'de> Visitor<'de> for EventFields {
            type Value = EventMark;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an event")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<EventMark, A::Error> {
                let [
                    mut kind,
                    mut bytes,
                    mut sha256,
                    mut chain,
                    mut head,
                    mut seal,
                ] = [const { PlainValue::Other }; 6];
                // Of a name that stands twice the last counts, as in a map.
                while let Some(name) = map.next_key::<PlainValue<'de>>()? {
                    let value = map.next_value::<PlainValue<'de>>()?;
                    match name.text() {
                        Some("kind") => kind = value,
                        Some("bytes") => bytes = value,
                        Some("sha256") => sha256 = value,
                        Some("chain") => chain = value,
                        Some("head") => head = value,
                        Some("seal") => seal = value,
                        _ => {}
                    }
                }
                Ok(EventMark::new(&MarkFields {
                    kind: kind.text(),
                    bytes: bytes.number(),
                    sha256: sha256.text(),
                    chain: chain.text(),
                    head: head.text(),
                    seal: seal.text(),
                }))
            }
        }
        deserializer.deserialize_map(EventFields)
    }
}

/// A text, a number, or something else that was read and not kept.
enum PlainValue<'de> {
    Text(Cow<'de, str>),
    Number(u64),
    Other,
}

impl PlainValue<'_> {
    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    fn number(&self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for PlainValue<'de> {
    /// By what is there, as a whole value would be read: numbers in range, texts that are text, depth bounded.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PlainVisitor)
    }
}

struct PlainVisitor;

impl<'de> Visitor<'de> for PlainVisitor {
    type Value = PlainValue<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(PlainValue::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(PlainValue::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(PlainValue::Number(number))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(PlainValue::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(PlainValue::Other)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(PlainValue::Other)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(PlainValue::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<PlainValue<'de>>()?.is_some() {}
        Ok(PlainValue::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map
            .next_entry::<PlainValue<'de>, PlainValue<'de>>()?
            .is_some()
        {}
        Ok(PlainValue::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ChainHead;

    /// Both ways to read a record, held against each other.
    fn both(event: &str) -> (Option<EventMark>, Option<EventMark>) {
        let zero = RecordDigest::ZERO;
        let body = format!(r#"{{"seq":7,"at":1,"prev":"{zero}","event":{event}}}"#);
        let whole = serde_json::from_str::<AuditRecord>(&body).ok();
        let link = serde_json::from_str::<RecordLink>(&body).ok();
        (
            whole.map(|record| RecordLink::of(&record).mark),
            link.map(|link| link.mark),
        )
    }

    #[test]
    fn what_is_no_record_is_no_link_either() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200));
        let (head, seal) = (ChainHead::START, RecordDigest::ZERO);
        let witnessed = format!(
            r#"{{"kind":"witnessed","chain":"0123456789abcdef","place":"a","head":"{head}","seal":"{seal}"}}"#
        );
        let events = [
            r#"{"kind":"resumed","found":"1","noted":"2"}"#,
            r#"{"kind":"mended","bytes":5,"sha256":"ab"}"#,
            r#"{"kind":"mended","bytes":5}"#,
            r#"{"kind":"mended","bytes":-5,"sha256":"ab"}"#,
            r#"{"kind":"mended","bytes":5.0,"sha256":"ab"}"#,
            r#"{"kind":["mended"],"bytes":5,"sha256":"ab"}"#,
            r#"{"kind":"command","kind":"resumed"}"#,
            r#"{"kind":"resumed","kind":5}"#,
            r#"{"kind":"witnessed","chain":"0123456789abcdef","head":"7:zz","seal":"ab"}"#,
            &witnessed,
            r#"{"\u006bind":"res\u0075med"}"#,
            r#"{"kind":"command","more":{"a":[1,-2,2.5,true,null,"x\n"]}}"#,
            "{}",
            // No records.
            r#"{"a":1e999}"#,
            r#"{"a":"\ud800"}"#,
            &deep,
            "[]",
            "5",
            "null",
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            r#"{5:1}"#,
        ];
        for event in events {
            let (whole, link) = both(event);
            assert_eq!(whole, link, "{event}");
        }
        assert_eq!(both(events[0]).1, Some(EventMark::Resumed));
        assert!(matches!(
            both(events[1]).1,
            Some(EventMark::Mended { bytes: 5, .. })
        ));
        assert!(matches!(
            both(&witnessed).1,
            Some(EventMark::Witnessed(PublishedHead { head, .. })) if head == ChainHead::START
        ));
        assert_eq!(both(r#"{"a":1e999}"#).1, None);
    }
}
