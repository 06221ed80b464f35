//! Where the daemon listens.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use reqwest::Url;

use crate::SignalConfigError;

/// An address of signal-cli's daemon, one for each way in which it can be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DaemonEndpoint {
    /// `--http`: `http://127.0.0.1:8080`.
    Http(Url),
    /// `--tcp`: `tcp://127.0.0.1:7583`.
    Tcp(String),
    /// `--socket`: `unix:///run/user/1000/signal-cli/socket`.
    Unix(PathBuf),
}

impl DaemonEndpoint {
    pub(crate) fn is_loopback(&self) -> bool {
        match self {
            Self::Http(url) => url.host_str().is_some_and(is_loopback),
            Self::Tcp(address) => address
                .rsplit_once(':')
                .is_some_and(|(host, _)| is_loopback(host)),
            Self::Unix(_) => true,
        }
    }
}

impl FromStr for DaemonEndpoint {
    type Err = SignalConfigError;

    fn from_str(text: &str) -> Result<Self, SignalConfigError> {
        let wrong = || SignalConfigError::Address;
        if let Some(path) = text.strip_prefix("unix://") {
            let path = PathBuf::from(path);
            return path
                .is_absolute()
                .then_some(Self::Unix(path))
                .ok_or_else(wrong);
        }
        if let Some(address) = text.strip_prefix("tcp://") {
            let address = address.trim_end_matches('/');
            let (host, port) = address.rsplit_once(':').ok_or_else(wrong)?;
            let fits = !host.is_empty() && !address.contains('/') && port.parse::<u16>().is_ok();
            return fits
                .then(|| Self::Tcp(address.to_owned()))
                .ok_or_else(wrong);
        }
        let url = Url::parse(text.trim_end_matches('/')).map_err(|_| wrong())?;
        let fits = matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.query().is_none()
            && url.fragment().is_none();
        fits.then_some(Self::Http(url)).ok_or_else(wrong)
    }
}

impl fmt::Display for DaemonEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Without what may stand before the host: a proxy in front may want a password.
            Self::Http(url) => {
                write!(
                    f,
                    "{}://{}",
                    url.scheme(),
                    url.host_str().unwrap_or_default()
                )?;
                url.port().map_or(Ok(()), |port| write!(f, ":{port}"))
            }
            Self::Tcp(address) => write!(f, "tcp://{address}"),
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
        }
    }
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_how_the_daemon_is_spoken_to() {
        for (text, shown, loopback) in [
            ("http://127.0.0.1:8080/", "http://127.0.0.1:8080", true),
            ("http://me:secret@signal:8080", "http://signal:8080", false),
            ("tcp://localhost:7583", "tcp://localhost:7583", true),
            ("tcp://[::1]:7583/", "tcp://[::1]:7583", true),
            (
                "unix:///run/signal-cli/socket",
                "unix:///run/signal-cli/socket",
                true,
            ),
        ] {
            let endpoint: DaemonEndpoint = text.parse().unwrap();
            assert_eq!(
                (endpoint.to_string().as_str(), endpoint.is_loopback()),
                (shown, loopback)
            );
        }
        for text in [
            "",
            "127.0.0.1:8080",
            "ftp://a",
            "tcp://:1",
            "tcp://a:x",
            "unix://x",
            "http://a/?b",
        ] {
            assert_eq!(
                text.parse::<DaemonEndpoint>(),
                Err(SignalConfigError::Address),
                "{text:?}"
            );
        }
    }
}
