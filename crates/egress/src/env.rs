//! The environment that makes ordinary programs use the proxy port of their sandbox.

use std::collections::BTreeMap;

/// The certificates that programs in the sandbox should believe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertificateTrust<'a> {
    /// Theirs: no host has a credential, all TLS is end to end.
    TheirOwn,
    /// This bundle inside the sandbox: the usual authorities and ours.
    Bundle(&'a str),
}

/// Never proxied: what runs inside the sandbox itself.
const NO_PROXY: &str = "localhost,127.0.0.1,::1";

/// Standard input and output to `$1`, port `$2`, by CONNECT. In bash alone: not every system has a netcat, and
/// fewer have one that speaks to proxies. Half closes are not passed on; ssh needs none.
const TUNNEL: &str = r#"exec 3<>/dev/tcp/127.0.0.1/@PORT@ || exit 1
printf 'CONNECT %s:%s HTTP/1.1\r\nHost: %s:%s\r\n\r\n' "$1" "$2" "$1" "$2" >&3
read -r _ code _ <&3
while IFS= read -r line <&3 && [ "$line" != $'\r' ]; do :; done
if [ "$code" != 200 ]; then cat <&3 >&2; exit 1; fi
cat <&3 & exec cat >&3"#;

/// The script is in a variable of its own, so that neither git's shell nor ssh's `%` reads it.
const GIT_SSH: &str = r#"ssh -o ProxyCommand='bash -c "$HERMETIC_TUNNEL" tunnel %h %p' -o StrictHostKeyChecking=accept-new"#;

/// What every command of a sandbox needs, whose warden listens on `proxy_port` of its loopback.
pub fn sandbox_env(proxy_port: u16, trust: CertificateTrust<'_>) -> BTreeMap<String, String> {
    let http = format!("http://127.0.0.1:{proxy_port}");
    let java = [
        "-Djava.net.useSystemProxies=false".to_owned(),
        format!("-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort={proxy_port}"),
        format!("-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort={proxy_port}"),
        "-Dhttp.nonProxyHosts=localhost|127.*|[::1]".to_owned(),
    ];
    let tunnel = TUNNEL.replace("@PORT@", &proxy_port.to_string());

    let mut env = BTreeMap::new();
    let mut set = |name: &str, value: &str| {
        env.insert(name.to_owned(), value.to_owned());
    };
    // SOCKS works too, but some clients refuse to start when told of a SOCKS proxy they cannot speak to.
    for (name, value) in [
        ("http_proxy", &http),
        ("https_proxy", &http),
        ("all_proxy", &http),
        // aiohttp goes by the scheme it is asked for.
        ("ws_proxy", &http),
        ("wss_proxy", &http),
        ("ftp_proxy", &http),
    ] {
        set(name, value);
        set(&name.to_ascii_uppercase(), value);
    }
    for name in ["no_proxy", "NO_PROXY"] {
        set(name, NO_PROXY);
    }
    set("HERMETIC_TUNNEL", &tunnel);
    set("GIT_SSH_COMMAND", GIT_SSH);
    set("PIP_PROXY", &http);
    set("npm_config_proxy", &http);
    set("npm_config_https_proxy", &http);
    set("npm_config_noproxy", NO_PROXY);
    set("YARN_HTTP_PROXY", &http);
    set("YARN_HTTPS_PROXY", &http);
    set("CARGO_HTTP_PROXY", &http);
    // The registry's index over git would need git's own set-up; over HTTP it is one request.
    set("CARGO_REGISTRIES_CRATES_IO_PROTOCOL", "sparse");
    set("NODE_USE_ENV_PROXY", "1");
    set("JAVA_TOOL_OPTIONS", &java.join(" "));
    if let CertificateTrust::Bundle(bundle) = trust {
        for name in CA_VARIABLES {
            set(name, bundle);
        }
    }
    env
}

/// What OpenSSL, curl, git, Python, pip, Node, cargo, Deno and the AWS tools read.
const CA_VARIABLES: &[&str] = &[
    "SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "REQUESTS_CA_BUNDLE",
    "PIP_CERT",
    "NODE_EXTRA_CA_CERTS",
    "npm_config_cafile",
    "CARGO_HTTP_CAINFO",
    "DENO_CERT",
    "AWS_CA_BUNDLE",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(trust: CertificateTrust<'_>) -> String {
        sandbox_env(3128, trust)
            .iter()
            .map(|(name, value)| format!("{name}={value}\n"))
            .collect()
    }

    #[test]
    fn both_cases_and_every_tool() {
        insta::assert_snapshot!(shown(CertificateTrust::TheirOwn));
    }

    #[test]
    fn the_bundle_is_named_only_where_it_is_used() {
        assert!(!shown(CertificateTrust::TheirOwn).contains("SSL_CERT_FILE"));
        let named = shown(CertificateTrust::Bundle("/run/hermetic/ca.pem"));
        assert_eq!(
            named.matches("=/run/hermetic/ca.pem").count(),
            CA_VARIABLES.len()
        );
    }
}
