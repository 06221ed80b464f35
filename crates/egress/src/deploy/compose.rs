//! Compose files for a deployment in containers: an `internal` network without a way out, and an `egress`
//! network that only those have who need it.

use std::fmt::Write;

/// The choices from which a compose file is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComposeFile {
    pub variant: ComposeVariant,
    pub image: String,
    /// Allow rules of the proxy, in the tight variant.
    pub allow: Vec<String>,
    pub presets: Vec<String>,
    /// The user and group the services run as.
    pub user: Option<(u32, u32)>,
}

/// Tells who has the network that leads out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComposeVariant {
    /// The gateway has both networks: it talks to chats and models by itself.
    Plain,
    /// Only the proxy has the egress network; the gateway leaves through it.
    Tight,
}

/// Squid's, where people look for a proxy.
const PROXY_PORT: u16 = 3128;
const DASHBOARD_PORT: u16 = 9119;

const HOME_VOLUME: &str = "    volumes:\n      - hermes-home:/home/hermetic/.hermes\n";

impl ComposeFile {
    pub fn yaml(&self) -> String {
        let mut yaml = String::new();
        self.write(&mut yaml)
            .expect("writing to a string does not fail");
        yaml
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        out.push_str("# Written by `hermetic compose`. Start it with: docker compose up -d\n\n");
        out.push_str(NETWORKS);
        out.push_str("services:\n");
        self.write_gateway(out)?;
        self.write_dashboard(out)?;
        self.write_proxy(out)?;
        out.push_str("\nvolumes:\n  hermes-home:\n");
        Ok(())
    }

    fn write_gateway(&self, out: &mut String) -> std::fmt::Result {
        self.write_service(out, "gateway", "[\"gateway\", \"run\"]", SANDBOXES_INSIDE)?;
        out.push_str("    cgroup: private\n");
        out.push_str(SUM_OF_SANDBOXES);
        let out_of_it = match self.variant {
            ComposeVariant::Plain => {
                out.push_str("    # Both networks: messages come in from chats, requests go out to models.\n");
                "      egress:\n"
            }
            ComposeVariant::Tight => {
                out.push_str("    # No way out of its own: everything goes through the proxy.\n");
                ""
            }
        };
        out.push_str("    networks:\n      internal:\n");
        out.push_str(out_of_it);
        out.push_str("    environment:\n      HERMETIC_DASHBOARD_HOST: 0.0.0.0\n");
        out.push_str(DASHBOARD_PASSWORD);
        if self.variant == ComposeVariant::Tight {
            out.push_str(THROUGH_THE_PROXY);
            out.push_str(
                "    depends_on:\n      egress-proxy:\n        condition: service_healthy\n",
            );
        }
        out.push_str(HOME_VOLUME);
        write_probe(out, DASHBOARD_PORT)
    }

    /// The pages, in a container that makes no sandbox and has no way out. It reaches the gateway by a socket in
    /// the home, which both have.
    fn write_dashboard(&self, out: &mut String) -> std::fmt::Result {
        self.write_service(out, "dashboard", "[\"dashboard\", \"serve\"]", "")?;
        out.push_str("    # No way out, and nothing to do there.\n");
        out.push_str("    networks: [internal]\n");
        out.push_str("    environment:\n      HERMETIC_DASHBOARD_HOST: 0.0.0.0\n");
        // The gateway makes the home; without one running, pages say so.
        out.push_str("    depends_on: [gateway]\n");
        out.push_str(HOME_VOLUME);
        write_probe(out, DASHBOARD_PORT)
    }

    /// The one service with both networks in the tight variant. The dashboard's port has to be reached from
    /// this machine and from nowhere else, and a container on an internal network only cannot publish one;
    /// so the proxy carries it.
    fn write_proxy(&self, out: &mut String) -> std::fmt::Result {
        let mut arguments = vec!["egress".to_owned(), "serve".to_owned()];
        arguments.extend(["--listen".to_owned(), format!("0.0.0.0:{PROXY_PORT}")]);
        arguments.extend([
            "--publish".to_owned(),
            format!("0.0.0.0:{DASHBOARD_PORT}=dashboard:{DASHBOARD_PORT}"),
        ]);
        if self.variant == ComposeVariant::Tight {
            for rule in &self.allow {
                arguments.extend(["--allow".to_owned(), rule.clone()]);
            }
            for preset in &self.presets {
                arguments.extend(["--preset".to_owned(), preset.clone()]);
            }
        }
        let quoted: Vec<String> = arguments.iter().map(|argument| quote(argument)).collect();
        let command = format!("[{}]", quoted.join(", "));
        self.write_service(out, "egress-proxy", &command, "")?;
        out.push_str(match self.variant {
            ComposeVariant::Plain => {
                "    # Allows no host: here it only carries the dashboard's port.\n"
            }
            ComposeVariant::Tight => "    # The only one with a way out.\n",
        });
        out.push_str("    networks: [internal, egress]\n");
        if self.variant == ComposeVariant::Tight {
            out.push_str(COMPANY_PROXY);
        }
        out.push_str("    # The dashboard, reachable from this machine only.\n");
        writeln!(
            out,
            "    ports:\n      - \"127.0.0.1:{DASHBOARD_PORT}:{DASHBOARD_PORT}\""
        )?;
        write_probe(out, PROXY_PORT)
    }

    fn write_service(
        &self,
        out: &mut String,
        name: &str,
        command: &str,
        more_security: &str,
    ) -> std::fmt::Result {
        writeln!(out, "  {name}:")?;
        writeln!(out, "    image: {}", quote(&self.image))?;
        writeln!(out, "    command: {command}")?;
        if let Some((user, group)) = self.user {
            writeln!(out, "    user: \"{user}:{group}\"")?;
        }
        out.push_str("    restart: unless-stopped\n");
        out.push_str("    read_only: true\n");
        out.push_str("    tmpfs: [/tmp]\n");
        out.push_str("    cap_drop: [ALL]\n");
        out.push_str("    security_opt:\n      - no-new-privileges:true\n");
        out.push_str(more_security);
        Ok(())
    }
}

/// What a container denies that a sandbox inside it is made of.
const SANDBOXES_INSIDE: &str = concat!(
    "      # Sandboxes are made of namespaces and a /proc of their own, which a container's defaults deny;\n",
    "      # each has a stricter system call filter than the one let go here. Where sandboxes live elsewhere\n",
    "      # (terminal.backend docker or ssh) these three lines can go.\n",
    "      - seccomp:unconfined\n",
    "      - apparmor:unconfined\n",
    "      - systempaths=unconfined\n",
    "      # With HERMETIC_CGROUPS=writable-cgroups=true in a file .env beside this one, the kernel keeps the\n",
    "      # limits of each sandbox: the gateway divides the container's own cgroup, and reaches no other. It\n",
    "      # takes Docker 28 or later and cgroup version 2 as systemd mounts it; an older engine refuses the\n",
    "      # word, so what stands here otherwise changes nothing.\n",
    "      - ${HERMETIC_CGROUPS:-no-new-privileges=true}\n",
);

/// Handed on from the operator's own environment: empty where there is none.
const COMPANY_PROXY: &str = concat!(
    "    # A company's proxy behind it, from a file .env beside this one: COMPANY_PROXY=http://user:password@host:port.\n",
    "    environment:\n",
    "      HTTPS_PROXY: ${COMPANY_PROXY:-}\n",
    "      NO_PROXY: ${COMPANY_NO_PROXY:-}\n",
);

/// The gateway's alone: the service that shows the pages decides nothing. What is empty counts as not written.
const DASHBOARD_PASSWORD: &str = concat!(
    "      # From a file .env beside this one: without it the pages stay locked. Keys and tokens are in the home,\n",
    "      # where `docker compose exec gateway hermetic setup` writes them.\n",
    "      HERMETIC_DASHBOARD_PASSWORD: ${HERMETIC_DASHBOARD_PASSWORD:-}\n",
);

/// Unless it is asked to, an engine hands no part of its cgroups down to an unprivileged container, so the
/// limits of each sandbox in it are counted by the gateway. What the kernel keeps is this sum.
const SUM_OF_SANDBOXES: &str = concat!(
    "    # For the gateway and all its sandboxes together, kept by the kernel. Without HERMETIC_CGROUPS the\n",
    "    # limits of each sandbox are counted by the gateway: `docker compose exec gateway hermetic doctor` says\n",
    "    # which. With terminal.backend docker each sandbox has its own, kept by the kernel.\n",
    "    mem_limit: ${HERMETIC_MEMORY:-8g}\n",
    "    pids_limit: 4096\n",
);

/// The proxy's name is no name of the world, so it is reached by the engine's own DNS, and so is nothing else.
const THROUGH_THE_PROXY: &str = concat!(
    "      # The gateway's own requests and what leaves sandboxes. Public names are looked up and checked by the\n",
    "      # proxy, which is ours: there is no DNS for them here.\n",
    "      HERMETIC_PROXY: http://egress-proxy:3128\n",
    "      HERMETIC_EGRESS_NAMES: proxy\n",
    "      HERMETIC_NO_PROXY: localhost,dashboard,gateway\n",
);

const NETWORKS: &str = "\
networks:
  # No default route and no address of the host's own on its bridge: nothing to reach but each other.
  # Engines before Docker 28 pass over `isolated`: there, what listens on the bridge's address is reached.
  internal:
    driver: bridge
    internal: true
    driver_opts:
      com.docker.network.bridge.gateway_mode_ipv4: isolated
      com.docker.network.bridge.gateway_mode_ipv6: isolated
  egress:
    driver: bridge

";

fn write_probe(out: &mut String, port: u16) -> std::fmt::Result {
    let url = format!("http://127.0.0.1:{port}/health");
    write_health(
        out,
        &format!("[\"CMD\", \"hermetic\", \"probe\", \"{url}\"]"),
    )
}

fn write_health(out: &mut String, test: &str) -> std::fmt::Result {
    writeln!(
        out,
        "    healthcheck:\n      test: {test}\n      interval: 30s\n      timeout: 5s\n      retries: 3\n      \
         start_period: 10s"
    )
}

/// A YAML double-quoted scalar; JSON strings are a subset of them.
fn quote(text: &str) -> String {
    // A dollar sign would be read by compose as a variable.
    serde_json::Value::from(text.replace('$', "$$")).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compose(variant: ComposeVariant) -> String {
        ComposeFile {
            variant,
            image: "hermetic:latest".into(),
            allow: vec!["api.anthropic.com".into(), "api.telegram.org".into()],
            presets: vec!["github".into()],
            user: Some((1000, 1000)),
        }
        .yaml()
    }

    #[test]
    fn the_plain_variant() {
        insta::assert_snapshot!(compose(ComposeVariant::Plain));
    }

    #[test]
    fn the_tight_variant() {
        insta::assert_snapshot!(compose(ComposeVariant::Tight));
    }

    #[test]
    fn an_argument_cannot_break_out_of_its_quotes() {
        let text = ComposeFile {
            variant: ComposeVariant::Tight,
            image: "x".into(),
            allow: vec!["a\"]\n  evil: {x: $HOME".into()],
            presets: Vec::new(),
            user: None,
        }
        .yaml();
        assert!(text.contains(r#""a\"]\n  evil: {x: $$HOME""#), "{text}");
    }
}
