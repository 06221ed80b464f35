//! `hermetic compose`: the files for a deployment in containers.

mod hosts;

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use hermetic_egress::deploy::{ComposeFile, ComposeVariant, dockerfile, squid_allowlist};
use hermetic_egress::{CompiledRules, RulesText};

use self::hosts::GatewayHosts;
use super::load;
use crate::cli::CommandLine;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::output;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
There are two networks: `internal` cannot reach the outside, `egress` can. In the tight variant only \
the proxy is on `egress`; in the plain one the gateway is too. The dashboard is a service of its own \
on `internal`; its port is published on 127.0.0.1:9119. The proxy lets the gateway reach the chats and models \
that the configuration here names, beside what is said by --allow and --preset.

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

pub(crate) fn run(cli: &CommandLine, args: &ComposeArgs) -> Result<ExitReason, CommandFailure> {
    let config = load(cli)?;
    let GatewayHosts {
        allow,
        presets,
        left_out,
    } = hosts::needed(&config, &args.allow, &args.preset);
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
    for url in &left_out {
        let url = output::printable(url);
        output::progress(
            &format!("not reachable from a container as written: {url}"),
            true,
        );
    }
    let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
    output::print(&format!(
        "wrote {} into {}\nnext: copy the hermetic program beside the Dockerfile, then\n  \
         docker build -t {} . && docker compose up -d\n  \
         docker compose exec gateway hermetic setup && docker compose restart gateway\n",
        names.join(", "),
        args.into.display(),
        args.image,
    ))?;
    Ok(ExitReason::Ok)
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
