//! Where the cluster is and who we are there: a kubeconfig, or the pod we run in ourselves.

use std::env;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::{Certificate, Client, Identity, Proxy, Url, redirect};
use thiserror::Error;

use super::credential::CredentialSource;
use super::kubeconfig::{ContextFacts, Kubeconfig};

const CONNECT: Duration = Duration::from_secs(10);
/// What a pod is given by the cluster.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// What the operator wrote about it.
#[derive(Clone, Debug, Default)]
pub struct ClusterSource {
    pub kubeconfig: Option<PathBuf>,
    pub context: Option<String>,
    pub namespace: Option<String>,
}

/// A cluster that can be spoken to. Nothing was asked there yet.
pub struct ClusterAccess {
    pub(super) client: Client,
    pub(super) base: Url,
    pub(super) credential: CredentialSource,
    pub(super) namespace: String,
    /// How a person knows it: its context, or the cluster we run in.
    pub(super) name: String,
}

#[derive(Debug, Error)]
#[error("{what}")]
pub struct AccessError {
    what: String,
    remedy: Option<String>,
}

impl AccessError {
    pub(super) fn new(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            remedy: None,
        }
    }

    pub(super) fn file(path: &Path, why: &dyn fmt::Display) -> Self {
        Self::new(format!("cannot read {}: {why}", path.display()))
    }

    #[must_use]
    pub(super) fn help(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    pub fn remedy(&self) -> &str {
        let default = "write terminal.kubernetes_kubeconfig and terminal.kubernetes_context, and try \
                       them with kubectl";
        self.remedy.as_deref().unwrap_or(default)
    }
}

impl ClusterAccess {
    /// What is written, else `KUBECONFIG`, else the cluster we run in, else `~/.kube/config`.
    pub fn find(source: &ClusterSource) -> Result<Self, AccessError> {
        let facts = if let Some(path) = &source.kubeconfig {
            Kubeconfig::read(std::slice::from_ref(path))?.context(source.context.as_deref())?
        } else if let Some(paths) = env::var_os("KUBECONFIG").filter(|paths| !paths.is_empty()) {
            let paths: Vec<_> = env::split_paths(&paths).collect();
            Kubeconfig::read(&paths)?.context(source.context.as_deref())?
        } else if let Some(facts) = own_cluster(Path::new(ACCOUNT))? {
            facts
        } else {
            let home = env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
            let path = home.join(".kube/config");
            if !path.exists() {
                return Err(AccessError::new(
                    "there is no kubeconfig, and this is no pod of a cluster",
                )
                .help("write terminal.kubernetes_kubeconfig, or set KUBECONFIG"));
            }
            Kubeconfig::read(&[path])?.context(source.context.as_deref())?
        };
        Self::of(facts, source.namespace.clone())
    }

    fn of(facts: ContextFacts, namespace: Option<String>) -> Result<Self, AccessError> {
        let wrong = |why: &str| {
            AccessError::new(format!(
                "the server of {} makes no sense: {why}",
                facts.name
            ))
            .help("it should look like https://10.0.0.1:6443")
        };
        let mut base: Url = facts
            .server
            .parse()
            .map_err(|_| wrong("it is no address"))?;
        match base.scheme() {
            "https" => {}
            "http" if is_loopback(&base) => {}
            "http" => return Err(wrong("a token would cross the network in clear")),
            _ => return Err(wrong("it is not https")),
        }
        let mut client = Client::builder()
            .connect_timeout(CONNECT)
            // An exec takes over its connection, which only HTTP/1 allows.
            .http1_only()
            // With Nagle's algorithm a command takes 47 ms instead of 3.
            .tcp_nodelay(true)
            .tcp_keepalive(Duration::from_secs(30))
            // A redirect would carry the token elsewhere.
            .redirect(redirect::Policy::none())
            .no_proxy();
        if let Some(proxy) = &facts.proxy {
            let proxy = Proxy::all(proxy).map_err(|_| wrong("its proxy-url is no address"))?;
            client = client.proxy(proxy);
        }
        if let Some(authority) = &facts.authority {
            let certificates = Certificate::from_pem_bundle(authority)
                .ok()
                .filter(|certificates| !certificates.is_empty());
            let certificates = certificates.ok_or_else(|| {
                AccessError::new(format!(
                    "the certificate authority of {} is not PEM",
                    facts.name
                ))
            })?;
            client = client.tls_certs_only(certificates);
        }
        if let Some(identity) = &facts.identity {
            let identity = Identity::from_pem(identity.expose().as_bytes()).map_err(|_| {
                AccessError::new(format!(
                    "the client certificate of {} cannot be used",
                    facts.name
                ))
            })?;
            client = client.identity(identity);
        }
        if let Some(name) = &facts.tls_server_name {
            let address = base.host_str().and_then(|host| bare(host).parse().ok());
            let (Some(address), Some(port)) = (address, base.port_or_known_default()) else {
                return Err(AccessError::new(format!(
                    "{} has a tls-server-name and a server that is no IP address",
                    facts.name
                ))
                .help("write the server's IP address, or a name that its certificate has"));
            };
            client = client.resolve(name, SocketAddr::new(address, port));
            base.set_host(Some(name))
                .map_err(|_| wrong("its tls-server-name is no name"))?;
        }
        let client = client
            .build()
            .map_err(|error| AccessError::new(format!("no client for {}: {error}", facts.name)))?;
        Ok(Self {
            client,
            base,
            credential: facts.credential,
            namespace: namespace
                .or(facts.namespace)
                .unwrap_or_else(|| "default".to_owned()),
            name: facts.name,
        })
    }

    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Where the API is, as far as it is known without asking anybody; a pod must not reach it.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        let host = bare(self.base.host_str()?).parse().ok()?;
        Some(SocketAddr::new(host, self.base.port_or_known_default()?))
    }
}

/// What every pod with an account is told of its cluster; nothing where this is no such pod.
fn own_cluster(account: &Path) -> Result<Option<ContextFacts>, AccessError> {
    let (Ok(host), Ok(port)) = (
        env::var("KUBERNETES_SERVICE_HOST"),
        env::var("KUBERNETES_SERVICE_PORT"),
    ) else {
        return Ok(None);
    };
    let token = account.join("token");
    if !token.exists() {
        return Ok(None);
    }
    let authority = account.join("ca.crt");
    let pem = std::fs::read(&authority).map_err(|error| AccessError::file(&authority, &error))?;
    let namespace = std::fs::read_to_string(account.join("namespace")).ok();
    let host = if host.contains(':') {
        format!("[{host}]")
    } else {
        host
    };
    Ok(Some(ContextFacts {
        name: "the cluster this runs in".to_owned(),
        server: format!("https://{host}:{port}"),
        namespace: namespace.map(|text| text.trim().to_owned()),
        authority: Some(pem),
        tls_server_name: None,
        proxy: None,
        credential: CredentialSource::File(token),
        identity: None,
    }))
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = bare(host).parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

fn bare(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}

impl fmt::Debug for ClusterAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClusterAccess({}, {})", self.name, self.namespace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(server: &str) -> ContextFacts {
        ContextFacts {
            name: "c".to_owned(),
            server: server.to_owned(),
            namespace: None,
            authority: None,
            tls_server_name: None,
            proxy: None,
            credential: CredentialSource::Nothing,
            identity: None,
        }
    }

    #[test]
    fn a_token_goes_nowhere_in_clear() {
        for good in [
            "https://k.example:6443",
            "http://127.0.0.1:8001",
            "http://[::1]:1",
        ] {
            assert!(ClusterAccess::of(facts(good), None).is_ok(), "{good}");
        }
        for bad in ["http://k.example:8001", "k.example", "ftp://127.0.0.1", ""] {
            assert!(ClusterAccess::of(facts(bad), None).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_namespace_is_the_written_one_before_the_contexts() {
        let mut both = facts("https://k.example");
        both.namespace = Some("theirs".to_owned());
        let access = ClusterAccess::of(both, Some("ours".to_owned())).unwrap();
        assert_eq!(access.namespace(), "ours");
        let access = ClusterAccess::of(facts("https://k.example"), None).unwrap();
        assert_eq!(access.namespace(), "default");
    }

    #[test]
    fn a_name_for_the_certificate_goes_with_an_address_only() {
        let mut named = facts("https://10.1.2.3:6443");
        named.tls_server_name = Some("kubernetes".to_owned());
        let access = ClusterAccess::of(named, None).unwrap();
        assert_eq!(access.base.as_str(), "https://kubernetes:6443/");
        let mut named = facts("https://k.example:6443");
        named.tls_server_name = Some("kubernetes".to_owned());
        assert!(ClusterAccess::of(named, None).is_err());
    }
}
