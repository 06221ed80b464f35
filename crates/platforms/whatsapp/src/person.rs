//! Who somebody is: a phone number, or an id that Meta made for this business.
//!
//! Both come with signed notifications and are told apart by their shape, so that neither can stand in
//! for the other: a number is digits, an id begins with two letters and a dot.

use hermetic_types::UserId;

/// A phone number with its country code, digits only, as WhatsApp writes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PhoneNumber(String);

/// A business-scoped id, such as `US.13491208655302741918`. It stays the same for as long as the person
/// keeps their number.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct BusinessScopedId(String);

impl PhoneNumber {
    /// What is not a number as WhatsApp writes it is none.
    pub fn read(text: &str) -> Option<Self> {
        // E.164 has at most 15 digits; test numbers and groups' pseudo numbers are a little longer.
        let fits = (5..=20).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        fits.then(|| Self(text.to_owned()))
    }

    /// As people write it, with `+`, spaces, dashes and brackets.
    pub fn read_written(text: &str) -> Option<Self> {
        let bare = text.strip_suffix("@s.whatsapp.net");
        let bare = bare.or(text.strip_suffix("@c.us")).unwrap_or(text).trim();
        let bare = bare.strip_prefix('+').unwrap_or(bare);
        let digits: String = bare.chars().filter(|c| !" -()/".contains(*c)).collect();
        Self::read(&digits)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl BusinessScopedId {
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (country, rest) = text.split_once('.')?;
        // The id that several portfolios of one enterprise share.
        let own = rest.strip_prefix("ENT.").unwrap_or(rest);
        let fits = country.len() == 2
            && country.bytes().all(|b| b.is_ascii_uppercase())
            && (1..=128).contains(&own.len())
            && own.bytes().all(|b| b.is_ascii_alphanumeric());
        fits.then(|| Self(text.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whom an entry of an allowlist names: a number however it is written, a business-scoped id, or the
/// `…@lid` of a person whom the bridge shows without a number. Nothing for anything else.
pub fn person_named(entry: &str) -> Option<UserId> {
    let entry = entry.trim();
    let linked = |id: &str| {
        id.strip_suffix("@lid")
            .and_then(PhoneNumber::read)
            .is_some()
    };
    let name = if let Some(number) = PhoneNumber::read_written(entry) {
        number.0
    } else if BusinessScopedId::read(entry).is_some() || linked(entry) {
        entry.to_owned()
    } else {
        return None;
    };
    UserId::new(name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allowlist_names_people_by_number_and_by_id() {
        let named = |entry| person_named(entry).map(|user| user.to_string());
        for number in [
            "491701234567",
            "+49 170 1234567",
            " +49 (170) 123-4567 ",
            "491701234567@s.whatsapp.net",
        ] {
            assert_eq!(named(number).as_deref(), Some("491701234567"), "{number}");
        }
        for id in ["US.13491208655302741918", "US.ENT.1181579", "12345678@lid"] {
            assert_eq!(named(id).as_deref(), Some(id));
        }
        for nobody in [
            "", "*", "Alice", "us.1", "USA.1", "US.", "US.1 2", "1234", "@lid", "+",
        ] {
            assert_eq!(named(nobody), None, "{nobody:?}");
        }
    }

    #[test]
    fn a_number_and_an_id_are_never_taken_for_one_another() {
        assert_eq!(PhoneNumber::read("US.13491208655302741918"), None);
        assert_eq!(PhoneNumber::read("+491701234567"), None);
        assert_eq!(BusinessScopedId::read("491701234567"), None);
        assert_eq!(BusinessScopedId::read("US.ENT.ENT.1"), None);
    }
}
