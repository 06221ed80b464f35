//! `hermetic mcp login` and `logout`: an operator's act, at the terminal.

use std::fmt;
use std::io::{self, BufRead as _, Read as _};

use hermetic_app as app;
use hermetic_config::{Config, McpServerConfig, McpServerKind};
use hermetic_oauth::{
    AuthorityClient, LoginAttempt, LoginError, LoginSummary, OAuthSettings, PendingDeviceLogin,
    PendingLogin, RedirectListener,
};
use hermetic_types::{Secret, SystemClock, Timestamp};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::cli::CommandLine;
use crate::commands::load;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::ownership::refuse_root_for_another;
use crate::{by_hand, log, output};

/// What somebody may paste.
const LONGEST_LINE: u64 = 16 * 1024;

/// Who is logged in to a server that wants it, and until when.
pub(in crate::commands) enum LoginStanding {
    LoggedIn(LoginSummary),
    /// The address was changed after somebody logged in.
    OtherAddress,
    Nobody(String),
    Unreadable(String),
}

pub(super) async fn log_in(
    cli: &CommandLine,
    name: &str,
    by_code: bool,
) -> Result<ExitReason, CommandFailure> {
    let config = load(cli)?;
    by_hand::or_refuse(&config)?;
    refuse_root_for_another(config.home())?;
    let redactor = app::redactor(&config);
    log::hide(&redactor);
    let (server, settings) = server_with_login(&config, name)?;
    // The state folder has to be there.
    app::installation(config.home())?;
    let file = app::login_file(&config, name);
    let failed = |error: LoginError| CommandFailure::caused(&error, remedy(&error));
    let http = AuthorityClient::new(config.gateway().proxy.as_ref()).map_err(failed)?;
    let clock = SystemClock::shared();
    let attempt = LoginAttempt {
        server,
        settings,
        file: &file,
        http: &http,
        clock: &clock,
    };
    match by_code {
        true => {
            let pending = attempt.begin_on_device().await.map_err(failed)?;
            announce_code(name, &pending)?;
            pending.finish().await.map_err(failed)?;
        }
        false => {
            let listener = RedirectListener::open(settings).await.map_err(failed)?;
            let pending = attempt.begin(&listener).await.map_err(failed)?;
            announce(name, &pending, &listener)?;
            let code = code(&pending, &listener).await.map_err(failed)?;
            pending.finish(&code).await.map_err(failed)?;
        }
    }
    match state(&config, server_named(&config, name)?) {
        Some(standing) => output::print(&format!("{name}: {standing}\n"))?,
        None => output::print(&format!("{name}: logged in\n"))?,
    }
    Ok(ExitReason::Ok)
}

pub(super) async fn log_out(cli: &CommandLine, name: &str) -> Result<ExitReason, CommandFailure> {
    let config = load(cli)?;
    by_hand::or_refuse(&config)?;
    refuse_root_for_another(config.home())?;
    let file = app::login_file(&config, name);
    let forgotten = file.forget().await;
    let forgotten = forgotten.map_err(|error| {
        CommandFailure::caused(&error, "look at the file's rights, or remove it")
    })?;
    output::print(&match forgotten {
        true => format!(
            "{name}: logged out here; to end it at the authorization server too, remove this client \
             there\n"
        ),
        false => format!("{name}: nobody was logged in\n"),
    })?;
    Ok(ExitReason::Ok)
}

/// `None` for servers without logins.
pub(in crate::commands) fn state(
    config: &Config,
    server: &McpServerConfig,
) -> Option<LoginStanding> {
    let McpServerKind::Http {
        url,
        login: Some(_),
        ..
    } = &server.kind
    else {
        return None;
    };
    Some(match app::login_file(config, &server.name).summary() {
        Ok(Some(summary)) if summary.server == *url => LoginStanding::LoggedIn(summary),
        Ok(Some(_)) => LoginStanding::OtherAddress,
        Ok(None) => LoginStanding::Nobody(server.name.clone()),
        Err(error) => LoginStanding::Unreadable(error.to_string()),
    })
}

impl LoginStanding {
    pub(in crate::commands) fn works(&self) -> bool {
        let now = SystemClock::shared().now();
        match self {
            Self::LoggedIn(login) => login.is_renewed || login.expires.is_none_or(|end| now < end),
            Self::OtherAddress | Self::Nobody(_) | Self::Unreadable(_) => false,
        }
    }

    pub(in crate::commands) fn as_json(&self) -> Value {
        match self {
            Self::LoggedIn(login) => json!({
                "issuer": login.issuer,
                "scope": login.scope,
                "since": login.since.seconds(),
                "expires": login.expires.map(Timestamp::seconds),
                "renewed": login.is_renewed,
                "works": self.works(),
            }),
            other => json!({"works": false, "why": other.to_string()}),
        }
    }
}

impl fmt::Display for LoginStanding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LoggedIn(login) => {
                write!(f, "logged in at {}", login.issuer)?;
                if let Some(scope) = &login.scope {
                    write!(f, " for {scope:?}")?;
                }
                match (login.expires, login.is_renewed) {
                    (_, true) => f.write_str(", renewed by the gateway")?,
                    (None, false) => f.write_str(", until the server ends it")?,
                    (Some(end), false) if self.works() => write!(f, ", until {end}")?,
                    (Some(end), false) => write!(f, ", but it ended {end}: log in again")?,
                }
                match &login.wanted {
                    Some(wanted) => write!(f, "; it has asked for {wanted:?} since"),
                    None => Ok(()),
                }
            }
            Self::OtherAddress => {
                f.write_str("nobody is logged in to this address; the login is for another")
            }
            Self::Nobody(name) => write!(f, "nobody is logged in: hermetic mcp login {name}"),
            Self::Unreadable(why) => f.write_str(why),
        }
    }
}

fn server_named<'a>(config: &'a Config, name: &str) -> Result<&'a McpServerConfig, CommandFailure> {
    let mut servers = config.mcp_servers().iter();
    servers.find(|server| server.name == name).ok_or_else(|| {
        CommandFailure::new(
            format!("there is no MCP server {name:?} in the configuration"),
            "`hermetic mcp list` shows them",
        )
    })
}

fn server_with_login<'a>(
    config: &'a Config,
    name: &str,
) -> Result<(&'a str, &'a OAuthSettings), CommandFailure> {
    match &server_named(config, name)?.kind {
        McpServerKind::Http {
            url,
            login: Some(settings),
            ..
        } => Ok((url, settings)),
        McpServerKind::Refused(why) => Err(CommandFailure::new(
            format!("the MCP server {name:?} cannot be used"),
            why.clone(),
        )),
        _ => Err(CommandFailure::new(
            format!("the MCP server {name:?} has no logins"),
            "write `auth: oauth` for it, beside its `url:`",
        )),
    }
}

fn announce(
    name: &str,
    pending: &PendingLogin<'_>,
    listener: &RedirectListener,
) -> Result<(), CommandFailure> {
    let scope = for_scope(&pending.scope());
    output::print(&format!(
        "Log in to {name} at {}{scope}. Open this address in a browser:\n\n  {}\n\n\
         The browser's answer is awaited on port {} of this machine. Where the browser runs elsewhere, copy \
         the address that it ends up at and paste it here.\n",
        pending.issuer(),
        pending.address(),
        listener.port()
    ))
}

fn announce_code(name: &str, pending: &PendingDeviceLogin<'_>) -> Result<(), CommandFailure> {
    output::print(&format!(
        "Log in to {name} at {}{}. Open this page on any device and type the code in:\n\n  {}\n  {}\n\n\
         Do it only if you began this login yourself.\n",
        pending.issuer(),
        for_scope(&pending.scope()),
        pending.page(),
        pending.code()
    ))
}

fn for_scope(scope: &str) -> String {
    match scope {
        "" => String::new(),
        scope => format!(", for {scope:?}"),
    }
}

/// The code, from whichever comes first: the browser at the port, or a line at the keyboard.
async fn code(
    pending: &PendingLogin<'_>,
    listener: &RedirectListener,
) -> Result<Secret, LoginError> {
    let mut pasted = pasted_lines();
    let at_port = pending.wait(listener);
    tokio::pin!(at_port);
    loop {
        let line = tokio::select! {
            code = &mut at_port => return code,
            line = pasted.recv() => line,
        };
        let Some(line) = line else {
            // Nobody is at the keyboard.
            return at_port.await;
        };
        match pending.code(&line) {
            // Somebody may have copied another line.
            Err(LoginError::OtherState) => {
                let words = "That is not the answer to this login; paste the whole address.\n";
                let _ = output::print(words);
            }
            found => return found,
        }
    }
}

/// Lines from a thread of its own, which ends with the program: a read of a terminal cannot be given up.
fn pasted_lines() -> mpsc::Receiver<String> {
    let (send, lines) = mpsc::channel(1);
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        loop {
            let mut line = String::new();
            let read = input.by_ref().take(LONGEST_LINE).read_line(&mut line);
            if !read.is_ok_and(|count| count > 0) || send.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}

fn remedy(error: &LoginError) -> &'static str {
    match error {
        LoginError::Unreachable { .. } => "look at the network and at gateway.proxy",
        LoginError::Listen(_) => "choose another `oauth: redirect_port`, or none",
        LoginError::Slow(_) => "log in sooner, or raise `oauth: timeout`",
        LoginError::NoDeviceCodes(_) => {
            "log in without --device; the browser's answer can be pasted"
        }
        LoginError::NoRegistration(_) => "register a client at the authorization server",
        LoginError::MixedUp { .. } | LoginError::OtherIssuer { .. } => {
            "do not log in; ask whoever runs the server"
        }
        LoginError::File(_) => "look at the rights of the state folder",
        _ => "ask whoever runs the server, or put a token into its `headers:`",
    }
}

/// For `doctor`, which waits for nobody.
pub(in crate::commands) fn standings(config: &Config) -> Vec<(String, LoginStanding)> {
    let servers = config.mcp_servers().iter();
    let standing = |server: &McpServerConfig| Some((server.name.clone(), state(config, server)?));
    servers.filter_map(standing).collect()
}
