//! `hermetic kubernetes manifest`: the objects that a cluster is given before the first sandbox.

use clap::Subcommand;
use hermetic_app::{ManifestOptions, kubernetes_manifest};

use super::load;
use crate::cli::CommandLine;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::output;

#[derive(Debug, clap::Args)]
pub(crate) struct KubernetesArgs {
    #[command(subcommand)]
    command: KubernetesCommand,
}

#[derive(Debug, Subcommand)]
enum KubernetesCommand {
    /// Print YAML for `kubectl apply -f -`: a namespace, the rights of a gateway, a policy
    Manifest(ManifestArgs),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  hermetic kubernetes manifest | kubectl apply -f -
  hermetic kubernetes manifest --gateway hermetic --image registry.example/hermetic:1 > hermetic.yaml")]
struct ManifestArgs {
    /// Namespace of the sandboxes; terminal.kubernetes_namespace if not given
    #[arg(long, value_name = "NAME", value_parser = namespace)]
    namespace: Option<String>,
    /// Also run gateways in the cluster, in this namespace
    #[arg(long, value_name = "NAMESPACE", value_parser = namespace)]
    gateway: Option<String>,
    /// Image of the gateways
    #[arg(long, value_name = "NAME", default_value = "hermetic:latest", value_parser = image)]
    image: String,
    /// Add a ServiceMonitor, where the Prometheus operator is installed
    #[arg(long, requires = "gateway")]
    service_monitor: bool,
}

const DEFAULT_NAMESPACE: &str = "hermetic-sandboxes";

pub(crate) fn run(cli: &CommandLine, args: &KubernetesArgs) -> Result<ExitReason, CommandFailure> {
    let KubernetesCommand::Manifest(args) = &args.command;
    let namespace = match &args.namespace {
        Some(namespace) => namespace.clone(),
        None => {
            let written = load(cli)?.terminal().kubernetes.namespace.clone();
            written.unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned())
        }
    };
    if args.gateway.as_ref() == Some(&namespace) {
        return Err(CommandFailure::new(
            "gateways and sandboxes in one namespace would share its policy and its rights",
            "give them two: --namespace and --gateway",
        ));
    }
    output::print(&kubernetes_manifest(&ManifestOptions {
        namespace,
        gateway: args.gateway.clone(),
        image: args.image.clone(),
        monitor: args.service_monitor,
    }))?;
    Ok(ExitReason::Ok)
}

fn namespace(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let fits = (1..=63).contains(&text.len()) && text.chars().all(plain);
    if fits && !text.starts_with('-') && !text.ends_with('-') {
        Ok(text.to_owned())
    } else {
        Err("a namespace is 1 to 63 of a-z, 0-9 and '-'".to_owned())
    }
}

fn image(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "./:_-@".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        Ok(text.to_owned())
    } else {
        Err("an image is named as in `docker pull`".to_owned())
    }
}
