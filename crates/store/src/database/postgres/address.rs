//! Where a PostgreSQL is, without its password for whoever prints it.

use std::fmt;
use std::str::FromStr;

use sqlx::postgres::{PgConnectOptions, PgSslMode};
use thiserror::Error;

/// A `postgres://` address. Printed, it has no password.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresAddress {
    url: String,
    shown: String,
}

/// The address cannot be used; nobody was asked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PostgresAddressError {
    #[error("it does not begin with postgres:// or postgresql://")]
    Scheme,
    #[error("it names no database: postgres://user@host/database")]
    NoDatabase,
    #[error("`{0}` is not an option that is known here; known are {KNOWN_OPTIONS:?}")]
    UnknownOption(String),
    #[error(
        "it is not a valid address: {0} (in a user's name and a password, write %40 for @, %3A for :, %2F for /, \
         %3F for ? and %23 for #)"
    )]
    Invalid(String),
}

/// sqlx passes over what it does not know, with a log line that has the value in it.
const KNOWN_OPTIONS: [&str; 8] = [
    "application_name",
    "host",
    "password",
    "port",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslrootcert",
];

const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

impl PostgresAddress {
    /// Whether a text is meant to be one.
    pub fn is_meant_by(text: &str) -> bool {
        SCHEMES.iter().any(|scheme| text.starts_with(scheme))
    }

    /// The address with its password, for the place where it is kept.
    pub fn expose(&self) -> &str {
        &self.url
    }

    /// The password that is in it, as it is written there.
    pub fn password(&self) -> Option<&str> {
        let (_, rest) = self.url.split_once("://")?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (people, _) = place.split_once('/')?;
        let login = people.rsplit_once('@').map(|(login, _)| login);
        let in_login = login.and_then(|login| login.split_once(':'));
        let in_query = || pairs(query).find(|(key, _)| *key == "password");
        let password = in_login.or_else(in_query).map(|(_, password)| password);
        password.filter(|password| !password.is_empty())
    }

    pub(in crate::database) fn options(&self) -> Result<PgConnectOptions, PostgresAddressError> {
        let options = PgConnectOptions::from_str(&self.url)
            .map_err(|error| PostgresAddressError::Invalid(error.to_string()))?;
        let options = match self.says_ssl_mode() || is_near(&options) {
            true => options,
            // Rows and the password would go over a network to whoever answers there.
            false => options.ssl_mode(PgSslMode::VerifyFull),
        };
        let name = options
            .get_application_name()
            .unwrap_or("hermetic")
            .to_owned();
        Ok(options.application_name(&name))
    }

    fn says_ssl_mode(&self) -> bool {
        let (_, query) = self.url.split_once('?').unwrap_or_default();
        pairs(query).any(|(key, _)| key == "sslmode") || std::env::var_os("PGSSLMODE").is_some()
    }
}

/// On this machine, where nobody else hears what is said.
fn is_near(options: &PgConnectOptions) -> bool {
    let host = options.get_host();
    options.get_socket().is_some()
        || host.starts_with('/')
        || ["localhost", "127.0.0.1", "::1", "[::1]"].contains(&host)
}

impl FromStr for PostgresAddress {
    type Err = PostgresAddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let scheme = SCHEMES.into_iter().find(|scheme| text.starts_with(scheme));
        let rest = scheme.and_then(|scheme| text.strip_prefix(scheme));
        let rest = rest.ok_or(PostgresAddressError::Scheme)?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (people, path) = place.split_once('/').unwrap_or((place, ""));
        // Signs of a password that ends the place too early: what is left of it would be taken for the rest of the
        // address, and shown.
        if rest.contains('#') || path.contains(['@', '/', ':']) || query.contains('@') {
            let why = "a sign in it stands where it means something else".to_owned();
            return Err(PostgresAddressError::Invalid(why));
        }
        for (key, _) in pairs(query) {
            if !KNOWN_OPTIONS.contains(&key) {
                return Err(PostgresAddressError::UnknownOption(key.to_owned()));
            }
        }
        if path.is_empty() {
            return Err(PostgresAddressError::NoDatabase);
        }
        let shown = shown(people, path, query);
        let address = Self {
            url: text.to_owned(),
            shown,
        };
        address.options()?;
        Ok(address)
    }
}

fn shown(people: &str, path: &str, query: &str) -> String {
    let people = match people.rsplit_once('@') {
        Some((user, host)) => {
            let user = user.split_once(':').map_or(user, |(user, _)| user);
            format!("{user}@{host}")
        }
        None => people.to_owned(),
    };
    let kept: Vec<_> = pairs(query)
        .filter(|(key, _)| *key != "password")
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let query = match kept.is_empty() {
        true => String::new(),
        false => format!("?{}", kept.join("&")),
    };
    format!("postgres://{people}/{path}{query}")
}

fn pairs(query: &str) -> impl Iterator<Item = (&str, &str)> {
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

impl fmt::Display for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.shown, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        for text in [
            "postgres://me:s3cret@db.example/hermetic?sslmode=verify-full",
            "postgresql://me:s3@s3cret@db.example/hermetic",
            "postgres://me@db.example/hermetic?password=s3cret&sslmode=require",
        ] {
            let address: PostgresAddress = text.parse().unwrap();
            let shown = format!("{address} {address:?}");
            assert!(!shown.contains("s3"), "{shown}");
            assert!(shown.contains("me@db.example/hermetic"), "{shown}");
            assert_eq!(address.expose(), text);
        }
    }

    #[test]
    fn a_far_database_is_asked_who_it_is_unless_somebody_says_otherwise() {
        let mode = |text: &str| {
            let address: PostgresAddress = text.parse().unwrap();
            format!("{:?}", address.options().unwrap().get_ssl_mode())
        };
        assert_eq!(mode("postgres://me@db.example/h"), "VerifyFull");
        assert_eq!(
            mode("postgres://me@db.example/h?sslmode=require"),
            "Require"
        );
        let odd = "postgres://me:sslmode=disable@db.example/h?application_name=sslmode";
        assert_eq!(mode(odd), "VerifyFull");
        assert_eq!(mode("postgres://me@localhost/h"), "Prefer");
        assert_eq!(mode("postgres://me@%2Frun%2Fpostgresql/h"), "Prefer");
    }

    #[test]
    fn an_address_that_cannot_be_used_is_refused_with_words() {
        for (text, why) in [
            ("mysql://x/y", "begin"),
            ("postgres://me@host", "no database"),
            ("postgres://me@host/", "no database"),
            ("postgres://me@host/x?sslmod=require", "`sslmod`"),
            ("postgres://me@host/x?sslmode=maybe", "valid"),
            ("postgres://me@host:port/x", "valid"),
            ("postgres://me:12/s3cret@host/x", "%2F"),
            ("postgres://me:12#s3cret@host/x", "%23"),
            ("postgres://me:12/s3cret?@host/x", "%3F"),
        ] {
            let error = text.parse::<PostgresAddress>().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
    }
}
