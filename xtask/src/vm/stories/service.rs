//! A gateway that systemd runs, in each of the three ways to install it.

use std::time::{Duration, Instant};

use super::super::guest::{GuestUser, LONG, SHORT};
use super::{StoryContext, StoryError, expect_success, fail};

/// Whose service it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServiceKind {
    System,
    User,
    RunAs,
}

#[derive(Debug)]
pub(super) struct GuestService {
    pub(super) kind: ServiceKind,
    pub(super) unit: String,
    home: &'static str,
    /// Whoever writes to this one's gateway; a new one each time, so that no story reads the
    /// replies of another.
    pub(super) user: u32,
    /// How long `systemctl start` took, which ends when the gateway says that it is ready.
    pub(super) ready_after: Duration,
}

impl ServiceKind {
    pub(super) const ALL: [Self; 3] = [Self::System, Self::User, Self::RunAs];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::System => "system unit",
            Self::User => "user unit",
            Self::RunAs => "--run-as",
        }
    }

    /// Who installs it and asks systemd about it.
    pub(super) fn who(self) -> GuestUser {
        match self {
            Self::System | Self::RunAs => GuestUser::Root,
            Self::User => GuestUser::Person,
        }
    }

    fn home(self) -> &'static str {
        match self {
            Self::System => "/srv/bot",
            Self::User => "/home/person/bot",
            Self::RunAs => "/home/person/run-as-bot",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::System => "--system",
            Self::User => "--user",
            Self::RunAs => "--system --run-as person",
        }
    }

    fn systemctl(self) -> &'static str {
        match self {
            Self::System | Self::RunAs => "systemctl",
            Self::User => "systemctl --user",
        }
    }
}

impl GuestService {
    /// Installs and starts it, with the stand-in platform to serve.
    pub(super) fn start(
        context: &mut StoryContext,
        kind: ServiceKind,
        user: u32,
    ) -> Result<Self, StoryError> {
        context.platform.connect(&context.guest)?;
        let (who, home) = (kind.who(), kind.home());
        let mut script = format!("set -e\nrm -rf {home}\n");
        script.push_str(&context.platform.home(home));
        if kind == ServiceKind::RunAs {
            script.push_str(&format!("chown -R person:person {home}\n"));
        }
        script.push_str(&format!(
            "hermetic --home {home} gateway install {} >/tmp/installed-$(id -u)\n\
             grep -o 'hermetic-gateway[^ /]*\\.service' /tmp/installed-$(id -u)\n",
            kind.words()
        ));
        let said = expect_success(who, "install", context.guest.run(who, &script, LONG)?)?;
        // A second unit, for the sandboxes, may be named in the same line.
        let gateway = |name: &&str| name.starts_with("hermetic-gateway");
        let Some(unit) = said.out.lines().find(gateway) else {
            return fail(format!("install named no unit: {}", said.all()));
        };
        let mut service = Self {
            kind,
            unit: unit.to_owned(),
            home,
            user,
            ready_after: Duration::ZERO,
        };
        let begun = Instant::now();
        let started = service.systemctl(context, "start");
        service.ready_after = begun.elapsed();
        if started.is_err() {
            // The next one needs the port and the platform.
            service.uninstall(context)?;
        }
        started.map(|_| service)
    }

    /// The same, with somebody else who writes to it.
    pub(super) fn with_user(&self, user: u32) -> Self {
        Self {
            unit: self.unit.clone(),
            user,
            ..*self
        }
    }

    pub(super) fn systemctl(
        &self,
        context: &StoryContext,
        verb: &str,
    ) -> Result<String, StoryError> {
        let line = format!("{} {verb} {}", self.kind.systemctl(), self.unit);
        let who = self.kind.who();
        let said = context.guest.run(who, &line, LONG)?;
        let said = match expect_success(who, &line, said) {
            Ok(said) => said,
            Err(StoryError::Failed(why)) => {
                return fail(format!("{why} {}", self.journal(context)?));
            }
            Err(other) => return Err(other),
        };
        Ok(said.out)
    }

    /// The pid of the gateway, once the unit is active with another than this.
    pub(super) fn wait_active(
        &self,
        context: &StoryContext,
        other_than: u32,
        at_most: Duration,
    ) -> Result<u32, StoryError> {
        let end = Instant::now() + at_most;
        loop {
            let shown = self.systemctl(context, "show -p ActiveState -p MainPID")?;
            let pid = shown.lines().find_map(|line| line.strip_prefix("MainPID="));
            let pid = pid.and_then(|pid| pid.parse().ok()).unwrap_or(0);
            if shown.contains("ActiveState=active") && pid != 0 && pid != other_than {
                return Ok(pid);
            }
            if Instant::now() > end {
                return fail(format!(
                    "{} is not active again: {} {}",
                    self.kind.name(),
                    shown.replace('\n', " "),
                    self.journal(context)?
                ));
            }
            std::thread::sleep(Duration::from_secs(1));
        }
    }

    /// A command in the sandbox of this service's chat, and the reply with `text` in it.
    pub(super) fn shell(
        &self,
        context: &mut StoryContext,
        command: &str,
        text: &str,
    ) -> Result<String, StoryError> {
        context.platform.say(self.user, &format!("/sh {command}"))?;
        match context.platform.hear(self.user, text, LONG)? {
            Ok(reply) => Ok(reply),
            Err(why) => fail(format!("{}: {why}", self.kind.name())),
        }
    }

    /// Takes it back; its sandboxes end with their unit, and their files go with the home.
    pub(super) fn uninstall(&self, context: &StoryContext) -> Result<(), StoryError> {
        let (who, home) = (self.kind.who(), self.home);
        let script = format!("hermetic --home {home} gateway uninstall");
        expect_success(who, "uninstall", context.guest.run(who, &script, LONG)?)?;
        let left = "pgrep -l -f '[h]ermetic-cage' || true";
        let said = context.guest.run(GuestUser::Root, left, SHORT)?;
        if !said.out.is_empty() {
            return fail(format!("sandboxes live on: {}", said.out.trim()));
        }
        Ok(())
    }

    /// The last lines of its log.
    fn journal(&self, context: &StoryContext) -> Result<String, StoryError> {
        let line = format!(
            "journalctl --no-pager -q -o cat -n 8 _SYSTEMD_UNIT={0} + UNIT={0} + USER_UNIT={0} \
             + _SYSTEMD_USER_UNIT={0}",
            self.unit
        );
        Ok(context.guest.run(GuestUser::Root, &line, SHORT)?.out)
    }
}
