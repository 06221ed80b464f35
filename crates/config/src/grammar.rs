//! Small languages inside single values.

use std::path::{Component, Path};

/// Parts of `/host/path:/inside:rw`.
pub(crate) struct MountText<'a> {
    pub(crate) source: &'a str,
    pub(crate) target: &'a str,
    pub(crate) writable: bool,
}

/// `~/` may stand before the source only.
pub(crate) fn mount(text: &str) -> Option<MountText<'_>> {
    let mut parts = text.split(':');
    let source = parts.next()?;
    let target = parts.next().unwrap_or(source);
    let writable = match parts.next() {
        None | Some("ro") => false,
        Some("rw") => true,
        Some(_) => return None,
    };
    let source_fits = is_plain(source.strip_prefix('~').unwrap_or(source));
    let fits = parts.next().is_none() && source_fits && is_plain(target);
    fits.then_some(MountText {
        source,
        target,
        writable,
    })
}

/// Absolute, and leads nowhere but down.
pub(crate) fn is_plain(path: &str) -> bool {
    let path = Path::new(path);
    path.is_absolute() && path.components().all(|part| part != Component::ParentDir)
}

/// What a shell takes as the name of a variable.
pub(crate) fn is_variable_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !text.is_empty() && text.chars().all(plain) && !text.starts_with(|c: char| c.is_ascii_digit())
}

/// A host as below, with `tcp://` in front or ` in RANGE` behind. The proxy has the final word.
pub(crate) fn is_egress_rule(text: &str) -> bool {
    let target = match text.split_once(" in ") {
        Some((target, ranges)) if !ranges.trim().is_empty() => target.trim(),
        Some(_) => return false,
        None => text,
    };
    is_host(target.strip_prefix("tcp://").unwrap_or(target))
}

/// A name, a name with a port, or `*.name`.
pub(crate) fn is_host(text: &str) -> bool {
    let (name, port) = text.rsplit_once(':').unwrap_or((text, "443"));
    let name = name.strip_prefix("*.").unwrap_or(name);
    let fits = |label: &str| {
        !label.is_empty()
            && label
                .chars()
                .all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
    };
    name.len() <= 253 && name.split('.').all(fits) && port.parse::<u16>().is_ok_and(|port| port > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts() {
        for text in [
            "pypi.org",
            "*.github.com",
            "localhost:8080",
            "bücher.example",
        ] {
            assert!(is_host(text), "{text}");
        }
        for text in [
            "",
            "*",
            "*.",
            "https://pypi.org",
            "pypi.org/simple",
            "a..b",
            ".org",
            "a b",
            "a:0",
            "a:99999",
            "a:b",
            "a.*.b",
        ] {
            assert!(!is_host(text), "{text}");
        }
    }

    #[test]
    fn egress_rules() {
        for text in [
            "pypi.org",
            "tcp://github.com:22",
            "registry.lan in 10.2.0.0/16",
        ] {
            assert!(is_egress_rule(text), "{text}");
        }
        for text in ["https://pypi.org", "a in ", "tcp://", "a b"] {
            assert!(!is_egress_rule(text), "{text}");
        }
    }

    #[test]
    fn mounts() {
        for text in ["/a", "/a:/b", "/a:/b:ro", "/a:/b:rw", "~/a:/b"] {
            assert!(mount(text).is_some(), "{text}");
        }
        for text in [
            "",
            "a",
            "a:/b",
            "/a:b",
            "/a:/b:rx",
            "/a:/b:ro:x",
            "/../a",
            "/a:/b/../..",
            "/a:~/b",
        ] {
            assert!(mount(text).is_none(), "{text}");
        }
        assert!(mount("/a:/b").is_some_and(|mount| !mount.writable));
    }
}
