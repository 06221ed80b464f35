//! Who protects a server: RFC 9728 for the server, RFC 8414 or OpenID discovery for its authority.

use reqwest::{StatusCode, Url};
use serde_json::Value;

use crate::address::AddressRule;
use crate::challenge::AuthChallenge;
use crate::failure::{LoginError, legible};
use crate::scope::ScopeSet;
use crate::token::ClientAuth;
use crate::wire::{AuthorityRoute, WireAnswer, shown};

const RESOURCE: &str = "/.well-known/oauth-protected-resource";
const AUTHORITY: &str = "/.well-known/oauth-authorization-server";
const OPENID: &str = "/.well-known/openid-configuration";

/// What protects a server, by its own word.
#[derive(Debug)]
pub(crate) struct ProtectedResource {
    /// What tokens are asked for.
    pub(crate) resource: String,
    issuer: Url,
    kind: ResourceKind,
    pub(crate) scopes: Option<ScopeSet>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResourceKind {
    /// It names its authorization server.
    Described,
    /// It says nothing, as servers did before the specification of June 2025: it is its own authority.
    OwnAuthority,
}

/// What an authorization server says about itself.
#[derive(Debug)]
pub(crate) struct AuthorityMetadata {
    pub(crate) issuer: String,
    pub(crate) authorization_endpoint: Url,
    pub(crate) token_endpoint: Url,
    pub(crate) registration_endpoint: Option<Url>,
    /// Where a code is had that a person types in elsewhere (RFC 8628).
    pub(crate) device_endpoint: Option<Url>,
    pub(crate) scopes: ScopeSet,
    /// Absent where it does not say.
    pub(crate) client_auth: Option<Vec<ClientAuth>>,
    /// Whether its answers name it.
    pub(crate) names_issuer: bool,
    /// Whether a client's id may be the address of a document about it.
    pub(crate) takes_metadata_documents: bool,
}

impl ProtectedResource {
    pub(crate) async fn of(
        client: &AuthorityRoute,
        server: &Url,
        challenge: &AuthChallenge,
    ) -> Result<Self, LoginError> {
        let rule = AddressRule::of_server(server);
        if let Some(address) = &challenge.resource_metadata {
            let address = rule.check("its resource_metadata", address)?;
            if address.origin() != server.origin() {
                return Err(LoginError::Address {
                    what: "its resource_metadata",
                    address: shown(&address),
                    why: "it is not at the server itself",
                });
            }
            let answer = client.get(&address).await?;
            return Self::read(server, &address, &found(&address, answer)?, rule);
        }
        let path = server.path().trim_end_matches('/');
        let mut places = vec![at_root(server, &format!("{RESOURCE}{path}"))];
        if !path.is_empty() {
            places.push(at_root(server, RESOURCE));
        }
        for address in places {
            let answer = client.get(&address).await?;
            if is_document(&answer) {
                return Self::read(server, &address, &answer.json, rule);
            }
        }
        Ok(Self {
            resource: canonical(server),
            issuer: at_root(server, "/"),
            kind: ResourceKind::OwnAuthority,
            scopes: None,
        })
    }

    fn read(
        server: &Url,
        address: &Url,
        document: &Value,
        rule: AddressRule,
    ) -> Result<Self, LoginError> {
        let resource = text(document, "resource").unwrap_or_default();
        if !covers(&resource, server) {
            return Err(LoginError::OtherResource {
                address: shown(address),
                said: legible(&resource),
            });
        }
        let issuer = document.get("authorization_servers");
        let issuer = issuer.and_then(|all| all.get(0)).and_then(Value::as_str);
        let issuer = issuer.ok_or_else(|| LoginError::NoDocument {
            address: shown(address),
            what: "the name of an authorization server",
        })?;
        Ok(Self {
            resource,
            issuer: rule.check("its authorization server", issuer)?,
            kind: ResourceKind::Described,
            scopes: scopes(document),
        })
    }
}

impl ProtectedResource {
    /// Whether a document of that issuer is the one of the authority that was asked for.
    fn is_issuer(&self, issuer: &str, rule: AddressRule) -> Result<bool, LoginError> {
        Ok(match self.kind {
            ResourceKind::Described => {
                issuer.trim_end_matches('/') == self.issuer.as_str().trim_end_matches('/')
            }
            // Nobody named it, so it can be no other than the server itself.
            ResourceKind::OwnAuthority => {
                let said = rule.check("its issuer", issuer)?;
                // It is printed at a terminal as it was written.
                let is_legible = issuer.bytes().all(|byte| byte.is_ascii_graphic());
                is_legible && said.origin() == self.issuer.origin()
            }
        })
    }
}

impl AuthorityMetadata {
    pub(crate) async fn of(
        client: &AuthorityRoute,
        server: &Url,
        resource: &ProtectedResource,
    ) -> Result<Self, LoginError> {
        let rule = AddressRule::of_server(server);
        for address in metadata_places(&resource.issuer) {
            let answer = client.get(&address).await?;
            if is_document(&answer) {
                return Self::read(resource, &address, &answer.json, rule);
            }
        }
        Err(LoginError::NoAuthority(shown(&resource.issuer)))
    }

    fn read(
        resource: &ProtectedResource,
        address: &Url,
        document: &Value,
        rule: AddressRule,
    ) -> Result<Self, LoginError> {
        let missing = |what| LoginError::NoDocument {
            address: shown(address),
            what,
        };
        let issuer = text(document, "issuer").ok_or_else(|| missing("its issuer"))?;
        if !resource.is_issuer(&issuer, rule)? {
            return Err(LoginError::OtherIssuer {
                address: shown(address),
                said: legible(&issuer),
                expected: resource.issuer.to_string(),
            });
        }
        let endpoint = |name: &'static str| match text(document, name) {
            Some(endpoint) => rule.check(name, &endpoint).map(Some),
            None => Ok(None),
        };
        let authorization = endpoint("authorization_endpoint")?;
        let token = endpoint("token_endpoint")?;
        // Refused and not done without: the code would be good for whoever sees it on its way.
        if !lists(document, "code_challenge_methods_supported", "S256") {
            return Err(LoginError::NoPkce(legible(&issuer)));
        }
        let authorization = authorization.ok_or_else(|| missing("where people log in"))?;
        let is_true = |name: &str| document.get(name).and_then(Value::as_bool) == Some(true);
        let names_issuer = is_true("authorization_response_iss_parameter_supported");
        // A hostile authority could name the login page of an honest one beside a token endpoint of its own, and
        // be brought the code. Answers that name who gave them (RFC 9207) show that; a page of its own does too.
        if !names_issuer && !is_at_issuer(&authorization, &resource.issuer) {
            return Err(LoginError::ForeignLoginPage {
                issuer: legible(&issuer),
                page: shown(&authorization),
            });
        }
        Ok(Self {
            issuer,
            authorization_endpoint: authorization,
            token_endpoint: token.ok_or_else(|| missing("where tokens are given"))?,
            registration_endpoint: endpoint("registration_endpoint")?,
            device_endpoint: endpoint("device_authorization_endpoint")?,
            scopes: scopes(document).unwrap_or_default(),
            client_auth: client_auth(document),
            names_issuer,
            takes_metadata_documents: is_true("client_id_metadata_document_supported"),
        })
    }
}

/// Whether a page is at the issuer's own host, or one is below the other.
pub(crate) fn is_at_issuer(page: &Url, issuer: &Url) -> bool {
    let (page, issuer) = (page.host_str(), issuer.host_str());
    let (Some(page), Some(issuer)) = (page, issuer) else {
        return false;
    };
    let is_below = |host: &str, above: &str| {
        let rest = host.strip_suffix(above);
        // What is above must not be a public suffix such as `com`.
        above.contains('.') && rest.is_some_and(|rest| rest.ends_with('.'))
    };
    page == issuer || is_below(page, issuer) || is_below(issuer, page)
}

/// In the order of the specification.
fn metadata_places(issuer: &Url) -> Vec<Url> {
    match issuer.path().trim_end_matches('/') {
        "" => vec![at_root(issuer, AUTHORITY), at_root(issuer, OPENID)],
        path => vec![
            at_root(issuer, &format!("{AUTHORITY}{path}")),
            at_root(issuer, &format!("{OPENID}{path}")),
            at_root(issuer, &format!("{path}{OPENID}")),
        ],
    }
}

fn at_root(url: &Url, path: &str) -> Url {
    let mut url = url.clone();
    url.set_path(path);
    url.set_query(None);
    url
}

/// A server's own address as tokens name it.
fn canonical(server: &Url) -> String {
    let text = server.as_str();
    match server.path() {
        "/" if server.query().is_none() => text.trim_end_matches('/').to_owned(),
        _ => text.to_owned(),
    }
}

/// Whether a token for `resource` is one for this server: the same host, and its path or one above it.
fn covers(resource: &str, server: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else {
        return false;
    };
    let (above, path) = (resource.path().trim_end_matches('/'), server.path());
    let rest = path.strip_prefix(above);
    resource.origin() == server.origin()
        && resource.fragment().is_none()
        && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn is_document(answer: &WireAnswer) -> bool {
    answer.status == StatusCode::OK && answer.json.is_object()
}

fn found(address: &Url, answer: WireAnswer) -> Result<Value, LoginError> {
    match is_document(&answer) {
        true => Ok(answer.json),
        false => Err(LoginError::NoDocument {
            address: shown(address),
            what: "a description of who protects it",
        }),
    }
}

fn text(document: &Value, name: &str) -> Option<String> {
    document
        .get(name)
        .and_then(Value::as_str)
        .map(str::to_owned)
}

fn scopes(document: &Value) -> Option<ScopeSet> {
    let listed = document.get("scopes_supported")?.as_array()?;
    let mut scopes = ScopeSet::default();
    let texts = listed.iter().filter_map(Value::as_str);
    texts.for_each(|scope| scopes.add(scope));
    Some(scopes).filter(|scopes| !scopes.is_empty())
}

fn lists(document: &Value, name: &str, wanted: &str) -> bool {
    let listed = document.get(name).and_then(Value::as_array);
    listed.is_some_and(|listed| listed.iter().any(|one| one == wanted))
}

fn client_auth(document: &Value) -> Option<Vec<ClientAuth>> {
    let listed = document.get("token_endpoint_auth_methods_supported")?;
    let texts = listed.as_array()?.iter().filter_map(Value::as_str);
    Some(texts.filter_map(ClientAuth::named).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_for_this_server_or_for_what_is_above_it() {
        let server = Url::parse("https://mcp.test/a/mcp").expect("an address");
        for good in [
            "https://mcp.test",
            "https://MCP.test/a/",
            "https://mcp.test/a/mcp",
        ] {
            assert!(covers(good, &server), "{good}");
        }
        for bad in [
            "https://mcp.test/a/m",
            "https://mcp.test/b",
            "https://mcp.test:444/a",
            "http://mcp.test/a",
            "https://other.test/a/mcp",
            "https://mcp.test/a/mcp/more",
            "",
        ] {
            assert!(!covers(bad, &server), "{bad}");
        }
    }

    #[test]
    fn a_login_page_is_at_its_issuer() {
        let url = |text: &str| Url::parse(text).expect("an address");
        let issuer = url("https://login.test.example/tenant");
        for own in [
            "https://login.test.example/authorize",
            "https://eu.login.test.example/authorize",
            "https://test.example/authorize",
        ] {
            assert!(is_at_issuer(&url(own), &issuer), "{own}");
        }
        for other in [
            "https://honest.example/authorize",
            "https://xlogin.test.example/authorize",
            "https://example/authorize",
        ] {
            assert!(!is_at_issuer(&url(other), &issuer), "{other}");
        }
    }

    #[test]
    fn an_authority_with_a_path_is_asked_in_three_places() {
        let issuer = Url::parse("https://login.test/tenant/").expect("an address");
        let places = metadata_places(&issuer);
        let texts: Vec<_> = places.iter().map(Url::as_str).collect();
        assert_eq!(
            texts,
            [
                "https://login.test/.well-known/oauth-authorization-server/tenant",
                "https://login.test/.well-known/openid-configuration/tenant",
                "https://login.test/tenant/.well-known/openid-configuration",
            ]
        );
    }
}
