//! `hermetic probe`: is a server there and well? For health checks of containers.

use std::time::Duration;

use crate::exit::ExitReason;
use crate::failure::CommandFailure;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  hermetic probe http://127.0.0.1:9119/health")]
pub(crate) struct ProbeArgs {
    /// A plain http:// address that answers with a 2xx when all is well
    url: String,
    /// Wait this long for the answer
    #[arg(long, value_name = "SECONDS", default_value_t = 4)]
    timeout: u64,
}

pub(crate) fn run(args: &ProbeArgs) -> Result<ExitReason, CommandFailure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandFailure::caused(&error, "free some memory or processes"))?
        .block_on(hermetic_egress::probe(
            &args.url,
            Duration::from_secs(args.timeout),
        ))
        .map_err(|error| CommandFailure::caused(&error, "look at that server's own log"))?;
    Ok(ExitReason::Ok)
}
