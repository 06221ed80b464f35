//! `hermetic pairing …`: strangers who ask to be let in, and people who were.

use std::fmt::Write as _;

use clap::Subcommand;
use hermetic_access::{PairedRole, PairingService};
use hermetic_app as app;
use hermetic_audit::PairingEvent;
use hermetic_config::Config;
use hermetic_types::{Clock as _, Platform, SystemClock, Timestamp, UserId};
use serde_json::json;

use super::load;
use super::sandbox::rows::since;
use crate::by_hand;
use crate::cli::CommandLine;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::ownership::refuse_root_for_another;
use crate::{log, output};

#[derive(Debug, clap::Args)]
pub(crate) struct PairingArgs {
    #[command(subcommand)]
    command: PairingCommand,
}

#[derive(Debug, Subcommand)]
enum PairingCommand {
    /// List who waits and who was let in
    #[command(visible_alias = "ls")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Let in the person who holds this code
    #[command(after_help = "\
Where the configuration names nobody who may approve, the first person who is let in becomes the operator. \
That is meant for you, pairing yourself: pass --user if it is somebody else. The person is told in the chat.")]
    Approve {
        platform: Platform,
        code: String,
        /// Make them an operator, who may answer approvals
        #[arg(long, conflicts_with = "user")]
        operator: bool,
        /// Let them in as a user, even as the first
        #[arg(long)]
        user: bool,
    },
    /// End the access of a person who was let in by a code
    Revoke { platform: Platform, user: String },
    /// Void every waiting code
    #[command(visible_alias = "clear-pending")]
    Clear {
        /// Void only the codes of this platform
        platform: Option<Platform>,
    },
}

pub(crate) fn run(cli: &CommandLine, args: &PairingArgs) -> Result<ExitReason, CommandFailure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandFailure::caused(&error, "free some memory or processes"))?
        .block_on(act(cli, &args.command))
}

async fn act(cli: &CommandLine, command: &PairingCommand) -> Result<ExitReason, CommandFailure> {
    let config = load(cli)?;
    if !matches!(command, PairingCommand::List { .. }) {
        by_hand::or_refuse(&config)?;
    }
    refuse_root_for_another(config.home())?;
    // Makes the state folder where there is none yet.
    app::installation(config.home())?;
    let pairing = app::pairing(&app::store(&config).await?);
    let book = PairingBook {
        config: &config,
        pairing,
        now: SystemClock.now(),
    };
    match command {
        PairingCommand::List { json } => list(&book.pairing, book.now, *json).await?,
        PairingCommand::Approve {
            platform,
            code,
            operator,
            user,
        } => approve(&book, (*platform, code), *operator, *user).await?,
        PairingCommand::Revoke { platform, user } => revoke(&book, *platform, user).await?,
        PairingCommand::Clear { platform } => clear(&book, *platform).await?,
    }
    Ok(ExitReason::Ok)
}

/// Who is let in, and the record of who changed it.
struct PairingBook<'a> {
    config: &'a Config,
    pairing: PairingService,
    now: Timestamp,
}

impl PairingBook<'_> {
    fn note(
        &self,
        platform: Platform,
        act: PairingEvent,
        user: &str,
    ) -> Result<(), CommandFailure> {
        note(self.config, platform, act, user)
    }
}

async fn approve(
    book: &PairingBook<'_>,
    (platform, code): (Platform, &str),
    operator: bool,
    user: bool,
) -> Result<(), CommandFailure> {
    let is_first = || async {
        Ok::<_, CommandFailure>(!app::names_operators(book.config) && book.pairing.is_new().await?)
    };
    let role = match (operator, user) {
        (true, _) => PairedRole::Operator,
        (false, true) => PairedRole::User,
        (false, false) if is_first().await? => PairedRole::Operator,
        (false, false) => PairedRole::User,
    };
    // Who it is shows only when the code fits, so the attempt is what is written down before: nobody is
    // let in by an act that the record does not have.
    let wanted = match role {
        PairedRole::Operator => "somebody, as operator",
        PairedRole::User => "somebody",
    };
    book.note(platform, PairingEvent::Tried, wanted)?;
    let approved = book.pairing.approve(platform, code, role, book.now).await?;
    let approved = serde_json::to_value(&approved).unwrap_or_default();
    let (person, told) = let_in(&who(&approved), platform, role, operator);
    book.note(platform, PairingEvent::Approved, &person)?;
    output::print(&told)?;
    Ok(())
}

async fn revoke(
    book: &PairingBook<'_>,
    platform: Platform,
    user: &str,
) -> Result<(), CommandFailure> {
    let id = UserId::new(user).map_err(|error| {
        CommandFailure::caused(&error, "`hermetic pairing list` names the users")
    })?;
    if book.pairing.role_of(platform, &id).await?.is_none() {
        return Err(CommandFailure::new(
            format!("{id} was not let in by a code on {platform}"),
            "`hermetic pairing list` names who was; allowlists are in the configuration",
        ));
    }
    // Before it is done, as for every act that the record answers for.
    book.note(platform, PairingEvent::Revoked, id.as_str())?;
    book.pairing.revoke(platform, &id).await?;
    output::print(&format!("{id} is out on {platform}\n"))?;
    Ok(())
}

async fn clear(book: &PairingBook<'_>, platform: Option<Platform>) -> Result<(), CommandFailure> {
    let mut void = 0;
    for one in Platform::ALL
        .into_iter()
        .filter(|one| platform.is_none_or(|only| only == *one))
    {
        let cleared = book.pairing.clear_pending(one).await?;
        if cleared > 0 {
            book.note(one, PairingEvent::Cleared, &format!("{cleared} codes"))?;
        }
        void += cleared;
    }
    output::print(&format!("{void} codes are void\n"))?;
    Ok(())
}

/// The entry of the record and the words on the screen: nobody becomes an operator without a word.
fn let_in(who: &str, platform: Platform, role: PairedRole, asked: bool) -> (String, String) {
    if role == PairedRole::User {
        return (
            who.to_owned(),
            format!("{who} may write on {platform} now\n"),
        );
    }
    let why = if asked {
        String::new()
    } else {
        "They are the first to be let in, and the configuration names nobody who may approve.\nWas that somebody \
         else? `hermetic pairing revoke` puts them out, and --user lets them in without it.\n"
            .to_owned()
    };
    (
        format!("{who}, as operator"),
        format!(
            "{who} may write on {platform} now, and is an operator: may answer approvals\n{why}"
        ),
    )
}

/// In the record of this home.
fn note(
    config: &Config,
    platform: Platform,
    act: PairingEvent,
    user: &str,
) -> Result<(), CommandFailure> {
    let redactor = app::redactor(config);
    log::hide(&redactor);
    let event = hermetic_audit::AuditEvent::Pairing {
        platform,
        act,
        user: redactor.redact(user).into(),
        by: hermetic_audit::AuditText::constant("the command line"),
    };
    app::audit(config)?.append(&event, SystemClock.now())?;
    Ok(())
}

async fn list(
    pairing: &PairingService,
    now: Timestamp,
    as_json: bool,
) -> Result<(), CommandFailure> {
    let mut all = serde_json::Map::new();
    let mut text = String::new();
    for platform in Platform::ALL {
        let standing = pairing.standing(platform, now).await?;
        for one in &standing.approved {
            let role = match one.role {
                PairedRole::Operator => ", operator",
                PairedRole::User => "",
            };
            let (who, age) = (
                known(&one.user, &one.display),
                since(Some(one.approved_at), now),
            );
            let _ = writeln!(
                text,
                "{platform:10} may write  {who}{role}, let in {age} ago"
            );
        }
        for one in &standing.pending {
            let (who, age) = (
                known(&one.user, &one.display),
                since(Some(one.requested_at), now),
            );
            let _ = writeln!(text, "{platform:10} waits      {who}, for {age}");
        }
        all.insert(platform.name().to_owned(), json!(standing));
    }
    if as_json {
        return output::print_json(&all);
    }
    if text.is_empty() {
        text.push_str("nobody waits, and nobody was let in by a code\n");
    }
    output::print(&text)
}

fn who(one: &serde_json::Value) -> String {
    let field = |name: &str| one[name].as_str().unwrap_or_default();
    named(field("user"), field("display"))
}

fn known(user: &UserId, display: &str) -> String {
    named(user.as_str(), display)
}

fn named(user: &str, display: &str) -> String {
    match display {
        "" => user.to_owned(),
        _ => format!("{user} ({display})"),
    }
}
