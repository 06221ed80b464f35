//! The hosts that a gateway in a container has to reach: without them it is deaf, or has nothing to say.

use hermetic_app as app;
use hermetic_config::{Config, PlatformConfigs};
use hermetic_egress::{CompiledRules, RulesText};

/// What a gateway needs that was told of no host: where models and the usual chat are.
const USUAL_PRESET: &str = "llm";
const TELEGRAM: &str = "api.telegram.org";

/// Where each platform is if the configuration does not say otherwise: its API, its socket and its files.
const DISCORD: [&str; 4] = [
    "discord.com",
    "*.discord.gg",
    "cdn.discordapp.com",
    "media.discordapp.net",
];
const SLACK: [&str; 2] = ["slack.com", "*.slack.com"];
const WHATSAPP: [&str; 3] = ["graph.facebook.com", "*.fbsbx.com", "*.fbcdn.net"];

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct GatewayHosts {
    pub(super) allow: Vec<String>,
    pub(super) presets: Vec<String>,
    /// Addresses of the configuration that no rule can allow, such as this machine's own.
    pub(super) left_out: Vec<String>,
}

/// What was asked for, and in any case where the configured chats and models are.
pub(super) fn needed(config: &Config, allow: &[String], presets: &[String]) -> GatewayHosts {
    let mut hosts = GatewayHosts {
        allow: allow.to_vec(),
        presets: presets.to_vec(),
        left_out: Vec::new(),
    };
    let nothing_asked = allow.is_empty() && presets.is_empty();
    if nothing_asked {
        hosts.presets.push(USUAL_PRESET.to_owned());
    }
    let platforms = config.platforms();
    hosts.add_chats(platforms);
    if nothing_asked && platforms.enabled().next().is_none() {
        hosts.add(TELEGRAM);
    }
    // One that cannot be asked as it is configured is told of at the start of the gateway.
    for model in app::configured_models(config).unwrap_or_default() {
        hosts.add_address(&model.settings.base_url);
    }
    hosts
}

impl GatewayHosts {
    fn add_chats(&mut self, platforms: &PlatformConfigs) {
        if platforms.telegram.platform.enabled {
            let accounts = platforms.telegram.accounts.values();
            let urls = accounts.map(|account| account.base_url.as_deref());
            self.add_accounts(urls, &[TELEGRAM]);
        }
        if platforms.discord.platform.enabled {
            let accounts = platforms.discord.accounts.values();
            let urls = accounts.map(|account| account.base_url.as_deref());
            self.add_accounts(urls, &DISCORD);
        }
        if platforms.slack.platform.enabled {
            let accounts = platforms.slack.accounts.values();
            let urls = accounts.map(|account| account.base_url.as_deref());
            self.add_accounts(urls, &SLACK);
        }
        let cloud = &platforms.whatsapp_cloud;
        if cloud.platform.enabled {
            self.add_accounts([cloud.base_url.as_deref()], &WHATSAPP);
        }
        if platforms.whatsapp.platform.enabled {
            let bridge = platforms.whatsapp.bridge_url.iter();
            bridge.for_each(|url| self.add_address(url));
        }
        if platforms.signal.platform.enabled {
            let accounts = platforms.signal.accounts.values();
            accounts.for_each(|account| self.add_address(&account.http_url));
        }
        if platforms.matrix.platform.enabled {
            let accounts = platforms.matrix.accounts.values();
            accounts.for_each(|account| self.add_address(&account.homeserver));
        }
    }

    /// Each account's own address, or the platform's where one names none.
    fn add_accounts<'a>(
        &mut self,
        urls: impl IntoIterator<Item = Option<&'a str>>,
        usual: &[&str],
    ) {
        let mut nobody = true;
        for url in urls {
            nobody = false;
            match url {
                Some(url) => self.add_address(url),
                None => usual.iter().for_each(|host| self.add(host)),
            }
        }
        if nobody {
            usual.iter().for_each(|host| self.add(host));
        }
    }

    fn add_address(&mut self, url: &str) {
        match rule_for(url).filter(|rule| is_rule(rule)) {
            Some(rule) => self.add(&rule),
            None => self.left_out.push(without_login(url)),
        }
    }

    fn add(&mut self, rule: &str) {
        if !self.allow.iter().any(|known| known == rule) {
            self.allow.push(rule.to_owned());
        }
    }
}

fn is_rule(rule: &str) -> bool {
    CompiledRules::compile(&RulesText::allowing([rule.to_owned()])).is_ok()
}

/// It is printed.
fn without_login(url: &str) -> String {
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let host = rest.split_once('@').map_or(rest, |(_, host)| host);
            format!("{scheme}://{host}")
        }
        None => url.to_owned(),
    }
}

/// `host` or `host:port` of an address.
fn rule_for(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let authority = authority.rsplit('@').next()?;
    if authority.is_empty() {
        return None;
    }
    let has_port = authority.contains(':');
    Some(match scheme {
        "http" if !has_port => format!("{authority}:80"),
        _ => authority.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use hermetic_config::{ConfigInputs, HomeFolder};

    use super::*;

    #[test]
    fn a_rule_is_made_of_an_address() {
        let rule = |url| rule_for(url).unwrap_or_default();
        assert_eq!(rule("https://api.example.org/bot"), "api.example.org");
        assert_eq!(rule("http://bots.lan"), "bots.lan:80");
        assert_eq!(rule("http://u:p@bots.lan:8081/x"), "bots.lan:8081");
        assert_eq!(rule("bots.lan"), "");
    }

    fn needed_by(text: &str) -> GatewayHosts {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("config.yaml"), text).unwrap();
        let inputs = ConfigInputs {
            home: HomeFolder::at(folder.path()),
            managed: folder.path().join("managed.yaml"),
            variables: BTreeMap::new(),
            unreadable: Vec::new(),
        };
        let config = hermetic_config::load(&inputs).unwrap_or_else(|problems| panic!("{problems}"));
        needed(&config, &[], &["github".to_owned()])
    }

    #[test]
    fn every_chat_and_model_of_a_configuration_is_reached() {
        for (config, host) in [
            ("telegram: {token: '1:a'}", "api.telegram.org"),
            ("discord: {token: 'd'}", "*.discord.gg"),
            (
                "slack: {token: 'xoxb-1', app_token: 'xapp-1'}",
                "*.slack.com",
            ),
            (
                "platforms: {matrix: {enabled: true, homeserver: 'https://matrix.lan', access_token: t}}",
                "matrix.lan",
            ),
            (
                "platforms: {signal: {enabled: true, http_url: 'http://signal.lan:8080', account: '+4912345'}}",
                "signal.lan:8080",
            ),
            (
                "model: {default: m, base_url: 'https://llm.lan/v1'}",
                "llm.lan",
            ),
        ] {
            let hosts = needed_by(&format!("{config}\n"));
            assert!(
                hosts.allow.iter().any(|rule| rule == host),
                "{config}: {hosts:?}"
            );
            assert!(hosts.allow.iter().all(|rule| is_rule(rule)), "{hosts:?}");
            assert_eq!(hosts.presets, ["github"]);
        }
    }

    #[test]
    fn an_address_that_no_rule_allows_is_named_without_its_login() {
        let hosts = needed_by("model: {default: m, base_url: 'http://u:p@127.0.0.1:1/v1'}\n");
        assert_eq!(hosts.left_out, ["http://127.0.0.1:1/v1"]);
        assert_eq!(hosts.allow, [""; 0]);
    }
}
