//! The text of a unit.

use std::path::Path;
use std::time::Duration;

use hermetic_config::Home;

use super::{Keeper, Service, VARIABLE};

#[derive(Debug)]
pub(crate) struct Unit<'a> {
    pub(crate) service: &'a Service,
    pub(crate) program: &'a Path,
    pub(crate) home: &'a Home,
    /// Of a system unit; root if nobody is named.
    pub(crate) run_as: Option<&'a str>,
    /// How long turns may go on when it is stopped.
    pub(crate) grace: Duration,
    pub(crate) watchdog: Option<Duration>,
}

/// Beyond the turns' own time.
const TO_END: Duration = Duration::from_secs(60);

impl Unit<'_> {
    pub(crate) fn text(&self) -> String {
        let wanted_by = match self.service.keeper {
            Keeper::User => "default.target",
            Keeper::System => "multi-user.target",
        };
        let user = self
            .run_as
            .map_or_else(String::new, |user| format!("User={user}\n"));
        let watchdog = self.watchdog.map_or_else(String::new, |every| {
            format!("WatchdogSec={}\n", every.as_secs())
        });
        format!(
            "\
# Written by `hermetic gateway install`; `hermetic gateway uninstall` removes it.
[Unit]
Description=Hermetic gateway
After=network-online.target
Wants=network-online.target

[Service]
Type=notify
{user}Environment={VARIABLE}={}
ExecStart={} --home {} gateway run
Restart=on-failure
RestartSec=5
# The configuration is wrong: starting again does not mend it.
RestartPreventExitStatus=78
# Sandboxes go on living; the next start adopts them.
KillMode=process
# Each sandbox gets a cgroup of its own.
Delegate=yes
TimeoutStopSec={}
{watchdog}
[Install]
WantedBy={wanted_by}
",
            self.service.written(),
            quoted(self.program),
            quoted(self.home.root()),
            (self.grace + TO_END).as_secs(),
        )
    }

    /// Whether a unit of this text is for this home.
    pub(crate) fn serves(text: &str, home: &Home) -> bool {
        let home = format!("--home {} gateway run", quoted(home.root()));
        text.lines()
            .any(|line| line.starts_with("ExecStart=") && line.ends_with(&home))
    }
}

/// As systemd reads it back: quotes, `%` for specifiers and `$` for variables mean themselves.
fn quoted(path: &Path) -> String {
    let mut text = String::from("\"");
    for c in path.display().to_string().chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            '%' | '$' => text.extend([c, c]),
            '\n' => text.push_str("\\n"),
            c => text.push(c),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(keeper: Keeper, home: &Home, run_as: Option<&str>) -> String {
        Unit {
            service: &Service {
                keeper,
                name: "hermetic-gateway.service".to_owned(),
            },
            program: Path::new("/opt/my tools/hermetic"),
            home,
            run_as,
            grace: Duration::from_secs(30),
            watchdog: Some(Duration::from_secs(20)),
        }
        .text()
    }

    #[test]
    fn a_unit_reads_like_this() {
        insta::assert_snapshot!(text(Keeper::System, &Home::at("/srv/bot"), Some("alice")), @r#"
        # Written by `hermetic gateway install`; `hermetic gateway uninstall` removes it.
        [Unit]
        Description=Hermetic gateway
        After=network-online.target
        Wants=network-online.target

        [Service]
        Type=notify
        User=alice
        Environment=HERMETIC_SERVICE=system:hermetic-gateway.service
        ExecStart="/opt/my tools/hermetic" --home "/srv/bot" gateway run
        Restart=on-failure
        RestartSec=5
        # The configuration is wrong: starting again does not mend it.
        RestartPreventExitStatus=78
        # Sandboxes go on living; the next start adopts them.
        KillMode=process
        # Each sandbox gets a cgroup of its own.
        Delegate=yes
        TimeoutStopSec=90
        WatchdogSec=20

        [Install]
        WantedBy=multi-user.target
        "#);
    }

    #[test]
    fn it_is_known_whose_home_it_serves() {
        let odd = Home::at("/srv/100% \"odd\" $HOME\\");
        let text = text(Keeper::User, &odd, None);
        assert!(Unit::serves(&text, &odd), "{text}");
        assert!(!Unit::serves(&text, &Home::at("/srv/bot")));
        assert!(text.contains(r#"--home "/srv/100%% \"odd\" $$HOME\\" gateway run"#));
    }
}
