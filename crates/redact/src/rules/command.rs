//! Passwords on a command line, where no name stands before them, and files that are like one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::names::{line_of, mentions};
use super::value::{has_digit, has_letter, is_placeholder, quote, spaces};
use crate::byte_class::ByteClass;
use crate::window::{RuleMatch, TextAhead};

/// A short option that takes a password, and the programs that have it.
#[derive(Debug)]
pub(crate) struct PasswordOption {
    /// With the space before it.
    pub(crate) text: &'static str,
    programs: &'static [&'static str],
    /// Whether the value may stand apart. `mysql -p name` asks for the password and opens `name`.
    apart: bool,
}

pub(crate) static OPTIONS: [PasswordOption; 13] = [
    PasswordOption {
        text: " -p",
        programs: &["mysql", "mariadb"],
        apart: false,
    },
    PasswordOption {
        text: " -p",
        programs: &["sshpass", " login", "htpasswd", "mongo"],
        apart: true,
    },
    PasswordOption {
        text: " -a",
        programs: &["redis-cli", "valkey-cli"],
        apart: true,
    },
    PasswordOption {
        text: " -w",
        programs: &["ldap", "lftp"],
        apart: true,
    },
    PasswordOption {
        text: " -P",
        programs: &["ipmitool", "sqlcmd", "sqoop", "bcp ", "zip"],
        apart: true,
    },
    PasswordOption {
        text: " -p",
        programs: &["7z", "rar "],
        apart: false,
    },
    PasswordOption {
        text: " -k",
        programs: &["openssl enc", "openssl aes"],
        apart: true,
    },
    PasswordOption {
        text: " pass:",
        programs: &["openssl", "-pass", "gpg"],
        apart: false,
    },
    PasswordOption {
        text: " -storepass",
        programs: &["keytool", "jarsigner"],
        apart: true,
    },
    PasswordOption {
        text: " -keypass",
        programs: &["keytool", "jarsigner"],
        apart: true,
    },
    PasswordOption {
        text: "ed by ",
        programs: &["identifi"],
        apart: true,
    },
    PasswordOption {
        text: "thin:",
        programs: &["jdbc:oracle"],
        apart: false,
    },
    PasswordOption {
        text: "ED BY ",
        programs: &["identifi"],
        apart: true,
    },
];

pub(super) fn password_option(
    option: &PasswordOption,
    behind: &[u8],
    ahead: TextAhead<'_>,
) -> RuleMatch {
    if !ahead.is(0, option.text)? || !mentions(line_of(behind), option.programs) {
        return Ok(None);
    }
    let from = option.text.len();
    let start = if option.apart {
        spaces(ahead, from)?
    } else {
        from
    };
    if option.text.ends_with("by ") || option.text.ends_with("BY ") {
        let quoted = ahead.at(start)?;
        if !is_identified(behind) || quoted == Some(b'`') {
            return Ok(None);
        }
    }
    value_at(ahead, start)
}

/// `CREATE USER x IDENTIFIED BY`, and no prose about what something is identified by.
fn is_identified(behind: &[u8]) -> bool {
    const WORD: &[u8] = b"identifi";
    let from = behind.len().saturating_sub(WORD.len());
    behind[from..].eq_ignore_ascii_case(WORD)
        && mentions(line_of(behind), &["user ", "role ", "grant ", "to "])
}

/// `curl -u user:password`, `--user user:password`, `smbclient -U user%password`.
pub(super) fn user_option(text: &str, behind: &[u8], ahead: TextAhead<'_>) -> RuleMatch {
    if !ahead.folds_to(0, text)? {
        return Ok(None);
    }
    let at = ahead.short_run(text.len(), 1, |byte| byte == b'=')?;
    let at = spaces(ahead, at)?;
    let at = quote(ahead, at)?;
    let end = ahead.short_run(at, 64, |byte| {
        !byte.is_ascii_whitespace() && !b":%\"'`|;&<>()".contains(&byte)
    })?;
    let divider = ahead.at(end)?;
    if end == at || !matches!(divider, Some(b':' | b'%')) {
        return Ok(None);
    }
    // `-u 1000:1000` is somebody else's option.
    let line = ahead.short_run(end, 200, |byte| byte != b'\n')?;
    let web = ["curl", "http", "ftp", "smbclient", "rpcclient", "wget"];
    if !mentions(line_of(behind), &web) && !mentions(ahead.slice(end..line), &web[1..3]) {
        return Ok(None);
    }
    value_at(ahead, end + 1)
}

/// The rest of a word on a command line.
fn value_at(ahead: TextAhead<'_>, start: usize) -> RuleMatch {
    let start = quote(ahead, start)?;
    let end = ahead.run(start, ByteClass::Bare)?;
    let value = ahead.slice(start..end);
    let fits = value.len() >= 4 && !value.starts_with(b"-") && !is_placeholder(value);
    Ok((fits && (value.len() >= 6 || has_digit(value))).then_some(start..end))
}

/// `host:5432:database:user:password`, a line of `.pgpass`.
pub(super) fn pgpass(behind: &[u8], ahead: TextAhead<'_>) -> RuleMatch {
    let line = behind
        .rsplit(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    if line.is_empty() || line.iter().any(|byte| b" \t:/\"'".contains(byte)) {
        return Ok(None);
    }
    let mut at = 0;
    // The port, the database and the user.
    for field in 0..3 {
        let from = at + 1;
        let end = ahead.short_run(from, 64, |byte| {
            byte != b':' && (byte.is_ascii_graphic() && !b"/\"'<>(){}[],;".contains(&byte))
        })?;
        let text = ahead.slice(from..end);
        let port =
            text == b"*" || (4..=5).contains(&text.len()) && text.iter().all(u8::is_ascii_digit);
        if text.is_empty() || ahead.at(end)? != Some(b':') || field == 0 && !port {
            return Ok(None);
        }
        at = end;
    }
    let end = ahead.run(at + 1, ByteClass::Line)?;
    let value = ahead.slice(at + 1..end).trim_ascii_end();
    // A line of /etc/shadow or of another table has more fields.
    let goes_on = value
        .split(|byte| *byte == b'\\')
        .any(|part| part.get(1..).is_some_and(|rest| rest.contains(&b':')));
    let fits = value.len() >= 4 && !value.contains(&b' ') && !goes_on && !is_placeholder(value);
    Ok(fits.then_some(at + 1..at + 1 + value.len()))
}

/// `"auth": "dXNlcjpwYXNzd29yZA=="` of a registry, `_auth=…` of npm: base64 of `user:password`.
pub(super) fn registry_auth(behind: &[u8], ahead: TextAhead<'_>) -> RuleMatch {
    const WORD: &str = "auth";
    let opens = matches!(behind, [.., b'"' | b'\'' | b'_' | b':']) || behind.is_empty();
    if !opens || !ahead.folds_to(0, WORD)? {
        return Ok(None);
    }
    let at = quote(ahead, WORD.len())?;
    let at = spaces(ahead, at)?;
    if !matches!(ahead.at(at)?, Some(b':' | b'=')) {
        return Ok(None);
    }
    let at = spaces(ahead, at + 1)?;
    let start = quote(ahead, at)?;
    let end = ahead.run(start, ByteClass::Base64)?;
    let value = ahead.slice(start..end);
    let told = STANDARD.decode(value.get(..value.len().min(1024)).unwrap_or_default());
    let pair = told.is_ok_and(|told| told.contains(&b':') && told.iter().all(u8::is_ascii));
    Ok((value.len() >= 8 && pair).then_some(start..end))
}

/// What the schemes of `crypt` leave in `/etc/shadow` and `.htpasswd`.
pub(super) static HASHES: [&str; 20] = [
    "$6$", "$5$", "$1$", "$y$", "$7$", "$gy$", "$2a$", "$2b$", "$2y$", "$2x$", "$apr1$", "$argon2",
    "$scrypt$", "$pbkdf2", "$sha1$", "$md5", "$P$", "$8$", "$9$", "$krb5",
];

/// A ticket of Kerberos is written out in hexadecimal, and its beginning is enough to make it worthless.
const LONGEST_TICKET: usize = 1024;

/// How much of a hash is looked at.
const LOOKED_AT: usize = 256;

pub(super) fn password_hash(start: &str, ahead: TextAhead<'_>) -> RuleMatch {
    if !ahead.is(0, start)? {
        return Ok(None);
    }
    let end = if start == "$krb5" {
        ahead.short_run(0, LONGEST_TICKET, |byte| {
            byte.is_ascii_graphic() && byte != b'"'
        })?
    } else {
        ahead.run(1, ByteClass::Crypt)?
    };
    // A hash shows what it is at once, and a text may be nothing but beginnings of one.
    let value = ahead.slice(0..end.min(LOOKED_AT));
    let divided = value.iter().filter(|byte| **byte == b'$').count() >= 3 || start == "$P$";
    Ok((value.len() >= 22 && divided && has_letter(value)).then_some(0..end))
}
