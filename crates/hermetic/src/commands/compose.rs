//! `hermetic compose`: the files for a deployment in containers.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use hermetic_config::Config;
use hermetic_egress::deploy::{ComposeFile, ComposeVariant, dockerfile, squid_allowlist};
use hermetic_egress::{CompiledRules, RulesText};

use super::load;
use crate::cli::CommandLine;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::output;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
There are two networks: `internal` cannot reach the outside, `egress` can. In the tight variant only \
the proxy is on `egress`; in the plain one the gateway is too. The dashboard is a service of its own \
on `internal`; its port is published on 127.0.0.1:9119.

Examples:
  hermetic compose --into deploy
  hermetic compose --variant plain --print
  hermetic compose --allow api.openai.com --allow api.telegram.org --squid")]
pub(crate) struct ComposeArgs {
    /// Choose what has access to the network
    #[arg(long, value_enum, default_value_t = ComposeKind::Tight)]
    variant: ComposeKind,
    /// Write into this folder
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    into: PathBuf,
    /// Use this image for all services
    #[arg(long, value_name = "NAME", default_value = "hermetic:latest")]
    image: String,
    /// Let the gateway reach this host; may be repeated
    #[arg(long, value_name = "HOST")]
    allow: Vec<String>,
    /// Let the gateway reach a named list of hosts; see `hermetic egress presets`
    #[arg(long, value_name = "NAME")]
    preset: Vec<String>,
    /// Run the services as this user
    #[arg(long, value_name = "UID:GID", value_parser = user)]
    user: Option<(u32, u32)>,
    /// Also write the allowlist for Squid
    #[arg(long)]
    squid: bool,
    /// Overwrite existing files
    #[arg(long)]
    force: bool,
    /// Print the compose file and write nothing
    #[arg(long)]
    print: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ComposeKind {
    /// Only the proxy reaches the network
    Tight,
    /// The gateway reaches the network as well
    Plain,
}

/// What a gateway needs that was told of no host: where models and the usual chat are.
const USUAL_PRESET: &str = "llm";
const TELEGRAM: &str = "api.telegram.org";

pub(crate) fn run(cli: &CommandLine, args: &ComposeArgs) -> Result<ExitReason, CommandFailure> {
    let config = load(cli)?;
    let (allow, presets) = hosts(&config, args);
    let rules = RulesText {
        presets: presets.clone(),
        ..RulesText::allowing(allow.iter().cloned())
    };
    CompiledRules::compile(&rules).map_err(|error| {
        CommandFailure::new(error.to_string(), "see `hermetic egress serve --help`")
    })?;
    let compose = ComposeFile {
        variant: match args.variant {
            ComposeKind::Tight => ComposeVariant::Tight,
            ComposeKind::Plain => ComposeVariant::Plain,
        },
        image: args.image.clone(),
        allow,
        presets,
        user: args.user,
    };
    if args.print {
        output::print(&compose.yaml())?;
        return Ok(ExitReason::Ok);
    }
    let mut files = vec![
        ("docker-compose.yml", compose.yaml()),
        ("Dockerfile", dockerfile(args.user)),
    ];
    if args.squid {
        let list = squid_allowlist(&rules, &[])
            .map_err(|error| CommandFailure::caused(&error, "leave --squid out"))?;
        files.push(("squid-allowlist.conf", list));
    }
    for (name, text) in &files {
        write(&args.into, name, text, args.force)?;
    }
    let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
    output::print(&format!(
        "wrote {} into {}\nnext: copy the hermetic program beside the Dockerfile, then\n  \
         docker build -t {} . && docker compose up -d\n",
        names.join(", "),
        args.into.display(),
        args.image,
    ))?;
    Ok(ExitReason::Ok)
}

/// What was asked for, and in any case where the configured chats are: without them the gateway is deaf.
fn hosts(config: &Config, args: &ComposeArgs) -> (Vec<String>, Vec<String>) {
    let (mut allow, mut presets) = (args.allow.clone(), args.preset.clone());
    let nothing_asked = allow.is_empty() && presets.is_empty();
    if nothing_asked {
        presets.push(USUAL_PRESET.to_owned());
    }
    let telegram = &config.platforms().telegram;
    let no_chat = config.platforms().enabled().next().is_none();
    if telegram.platform.enabled || (nothing_asked && no_chat) {
        let bots = telegram.accounts.values();
        let mut hosts: Vec<_> = bots
            .map(|bot| bot.base_url.as_deref().and_then(rule_for))
            .map(|host| host.unwrap_or_else(|| TELEGRAM.to_owned()))
            .collect();
        if hosts.is_empty() {
            hosts.push(TELEGRAM.to_owned());
        }
        for host in hosts {
            if !allow.contains(&host) {
                allow.push(host);
            }
        }
    }
    (allow, presets)
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

fn write(folder: &Path, name: &str, text: &str, force: bool) -> Result<(), CommandFailure> {
    let path = folder.join(name);
    let mut options = OpenOptions::new();
    options.write(true);
    if force {
        options.create(true).truncate(true);
    } else {
        options.create_new(true);
    }
    let written = std::fs::create_dir_all(folder)
        .and_then(|()| options.open(&path))
        .and_then(|mut file| file.write_all(text.as_bytes()));
    match written {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(CommandFailure::new(
            format!("{} is there already", path.display()),
            "choose another folder with --into, or pass --force",
        )),
        other => other.map_err(|error| CommandFailure::file("write", &path, &error)),
    }
}

fn user(text: &str) -> Result<(u32, u32), String> {
    let wrong = || "expected UID:GID, as in 1000:1000".to_owned();
    let (user, group) = text.split_once(':').ok_or_else(wrong)?;
    Ok((
        user.parse().map_err(|_| wrong())?,
        group.parse().map_err(|_| wrong())?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_made_of_an_address() {
        let rule = |url| rule_for(url).unwrap_or_default();
        assert_eq!(rule("https://api.example.org/bot"), "api.example.org");
        assert_eq!(rule("http://bots.lan"), "bots.lan:80");
        assert_eq!(rule("http://u:p@bots.lan:8081/x"), "bots.lan:8081");
        assert_eq!(rule("bots.lan"), "");
    }
}
