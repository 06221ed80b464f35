//! Header fields: in order, names compared without case.

/// The header fields of one head, in the order they came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderFields(Vec<(String, Vec<u8>)>);

/// Fields that speak about one hop and never travel on, besides those that `Connection` names.
const HOP_BY_HOP: &[&str] = &[
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

impl HeaderFields {
    pub fn push(&mut self, name: &str, value: &[u8]) {
        self.0.push((name.to_owned(), value.to_vec()));
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_slice()))
    }

    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.iter()
            .filter(move |(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// The value of a field that stands there exactly once.
    pub fn only<'a>(&'a self, name: &'a str) -> Option<&'a [u8]> {
        let mut all = self.all(name);
        let first = all.next();
        if all.next().is_some() { None } else { first }
    }

    pub fn has(&self, name: &str) -> bool {
        self.all(name).next().is_some()
    }

    /// Whether a comma-separated field holds this token.
    pub fn lists(&self, name: &str, token: &str) -> bool {
        self.tokens(name).any(|t| t.eq_ignore_ascii_case(token))
    }

    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(n, _)| !n.eq_ignore_ascii_case(name));
    }

    pub fn set(&mut self, name: &str, value: &[u8]) {
        self.remove(name);
        self.push(name, value);
    }

    /// What remains for the next hop: nothing about this connection, nothing about this proxy.
    pub fn strip_hop_by_hop(&mut self) {
        // Those that the head itself names as being of one hop, or a sandbox could have a field of
        // ours passed on as its own.
        let named: Vec<String> = self
            .tokens("connection")
            .map(str::to_ascii_lowercase)
            .collect();
        self.0.retain(|(name, _)| {
            let name = name.to_ascii_lowercase();
            !HOP_BY_HOP.contains(&name.as_str())
                && !name.starts_with("proxy-")
                && !named.contains(&name)
        });
    }

    pub fn write(&self, out: &mut Vec<u8>) {
        for (name, value) in self.iter() {
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b": ");
            out.extend_from_slice(value);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"\r\n");
    }

    fn tokens<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.all(name)
            .filter_map(|value| std::str::from_utf8(value).ok())
            .flat_map(|value| value.split(','))
            .map(str::trim)
            .filter(|token| !token.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hop_by_hop_fields_stay_behind() {
        let mut fields = HeaderFields::default();
        for (name, value) in [
            ("Host", "a"),
            ("Connection", "X-Private, close"),
            ("X-Private", "1"),
            ("Proxy-Authorization", "p"),
            ("Proxy-Connection", "keep-alive"),
            ("TE", "trailers"),
            ("Upgrade", "h2c"),
            ("Keep-Alive", "5"),
            ("X-Public", "2"),
        ] {
            fields.push(name, value.as_bytes());
        }
        fields.strip_hop_by_hop();
        assert_eq!(
            fields.iter().map(|(name, _)| name).collect::<Vec<_>>(),
            ["Host", "X-Public"]
        );
    }

    #[test]
    fn a_doubled_field_is_not_the_only_one() {
        let mut fields = HeaderFields::default();
        fields.push("Host", b"a");
        assert_eq!(fields.only("host"), Some(&b"a"[..]));
        fields.push("host", b"a");
        assert_eq!(fields.only("host"), None);
    }
}
