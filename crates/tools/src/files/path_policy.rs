//! May this file be touched?
//!
//! The policy knows commands, and what it knows about a path it knows whatever command names it. So a
//! file tool asks about plain commands that would do the same. In a sandbox that is a boundary only
//! the operator's own rules speak; on the host, keys, start-up files and what is ours are asked about.

use std::sync::Arc;

use hermetic_policy::{JudgementContext, Policy, Verdict};
use hermetic_types::{Boundary, Command};
use tokio_util::sync::CancellationToken;

use crate::ask::settle;
use crate::{BlockedCommand, CommandApprover, DecidedCommand, JudgedAs};

#[derive(Clone, Debug)]
pub(super) struct PathPolicy {
    policy: Arc<Policy>,
    context: JudgementContext,
}

/// What is to be done at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathAct {
    Read,
    Write,
    Remove,
    /// Of everything below.
    Search,
}

impl PathPolicy {
    pub(super) fn new(policy: Arc<Policy>, context: JudgementContext) -> Self {
        Self { policy, context }
    }

    pub(super) fn is_judged(&self) -> bool {
        self.context.boundary() == Boundary::Judged
    }

    /// Whether nobody would have to be asked.
    pub(super) fn is_free(&self, act: PathAct, path: &str) -> bool {
        act.programs().iter().all(|program| {
            let words = program.iter().copied().chain([path]);
            let verdict = self.policy.judge(Command::words(words), &self.context);
            matches!(verdict, Verdict::Run(_))
        })
    }

    pub(super) async fn clear(
        &self,
        act: PathAct,
        path: &str,
        ask: &dyn CommandApprover,
        stop: &CancellationToken,
    ) -> Result<(), BlockedCommand> {
        let record = Command::words([act.name(), path]);
        let decided = |as_what: JudgedAs<'_>| {
            ask.decided(DecidedCommand {
                backend: self.context.backend,
                command: &record,
                as_what,
            })
        };
        let mut free = None;
        for program in act.programs() {
            let words = program.iter().copied().chain([path]);
            match self.policy.judge(Command::words(words), &self.context) {
                Verdict::Run(cleared) => free = Some(cleared),
                // Who says yes to one way of touching the file is not asked about the next.
                verdict => {
                    settle(verdict, decided, ask, stop).await?;
                    return Ok(());
                }
            }
        }
        if let Some(cleared) = &free {
            decided(JudgedAs::Run(cleared))?;
        }
        Ok(())
    }
}

impl PathAct {
    /// As it stands in the record of what was decided.
    fn name(self) -> &'static str {
        match self {
            Self::Read => "read_file",
            Self::Write => "write_file",
            Self::Remove => "remove_file",
            Self::Search => "search_files",
        }
    }

    /// To remove a file, or to replace one that is not to be seen, takes no less than to write it.
    fn programs(self) -> &'static [&'static [&'static str]] {
        match self {
            Self::Read => &[&["cat"]],
            Self::Write => &[&["tee"], &["cat"]],
            Self::Remove => &[&["rm"], &["tee"], &["cat"]],
            Self::Search => &[&["grep", "-r", "x"], &["cat"]],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CommandDenied, NoOneToAsk};
    use futures::future::BoxFuture;
    use hermetic_policy::{ApprovalQuestion, Cleared, PolicyRules};
    use hermetic_types::{BackendDescription, BackendKind, CommandProgram};
    use std::sync::Mutex;

    async fn may(backend: BackendDescription, act: PathAct, path: &str) -> bool {
        let mut context = JudgementContext::new(backend, "/srv/project", "/home/ann");
        context.own_files.push("/usr/local/bin/hermetic".to_owned());
        let gate = PathPolicy::new(Arc::default(), context);
        let stop = CancellationToken::new();
        gate.clear(act, path, &NoOneToAsk, &stop).await.is_ok()
    }

    #[tokio::test]
    async fn on_the_host_what_matters_is_asked_about() {
        let local = BackendDescription::judged(BackendKind::Local);
        for path in [
            "/home/ann/.ssh/authorized_keys",
            "/home/ann/.aws/credentials",
            "/home/ann/.bashrc",
            "/home/ann/.hermes/config.yaml",
            "/home/ann/.hermes/.env",
            "/usr/local/bin/hermetic",
            "/etc/passwd",
            "/etc/systemd/system/x.service",
            "/boot/grub/grub.cfg",
            "/srv/project/.env",
        ] {
            assert!(!may(local, PathAct::Write, path).await, "write {path}");
        }
        for path in ["/home/ann/.ssh/id_ed25519", "/home/ann/.hermes/.env"] {
            assert!(!may(local, PathAct::Read, path).await, "read {path}");
        }
        for act in [PathAct::Read, PathAct::Write, PathAct::Remove] {
            assert!(may(local, act, "/srv/project/notes.txt").await, "{act:?}");
        }
        assert!(!may(local, PathAct::Remove, "/home/ann/.ssh/id_ed25519").await);
    }

    /// Nobody to ask, and somebody who writes down.
    #[derive(Debug, Default)]
    struct Clerk(Mutex<Vec<String>>);

    impl CommandApprover for Clerk {
        fn ask<'a>(
            &'a self,
            question: ApprovalQuestion,
            stop: &'a CancellationToken,
        ) -> BoxFuture<'a, Result<Cleared, CommandDenied>> {
            NoOneToAsk.ask(question, stop)
        }

        fn decided(&self, decided: DecidedCommand<'_>) -> Result<(), CommandDenied> {
            let CommandProgram::Words(words) = &decided.command.program else {
                panic!("{:?}", decided.command);
            };
            let became = match decided.as_what {
                JudgedAs::Run(_) => "run",
                JudgedAs::Refused(_) => "refused",
                JudgedAs::Denied(_) => "denied",
            };
            let line = format!("{} {became}", words.join(" "));
            self.0.lock().expect("not poisoned").push(line);
            Ok(())
        }
    }

    #[tokio::test]
    async fn every_file_that_is_judged_is_written_down_once() {
        let context = JudgementContext::new(
            BackendDescription::judged(BackendKind::Local),
            "/srv/project",
            "/home/ann",
        );
        let rules = PolicyRules {
            deny: vec!["tee /srv/project/secret".to_owned()],
            ..PolicyRules::default()
        };
        let gate = PathPolicy::new(Arc::new(Policy::new(rules)), context);
        let (clerk, stop) = (Clerk::default(), CancellationToken::new());
        for (act, path) in [
            (PathAct::Read, "/srv/project/a"),
            (PathAct::Remove, "/srv/project/a"),
            (PathAct::Read, "/home/ann/.ssh/id_ed25519"),
            (PathAct::Write, "/srv/project/secret"),
        ] {
            let _ = gate.clear(act, path, &clerk, &stop).await;
        }
        assert_eq!(
            clerk.0.into_inner().expect("not poisoned"),
            [
                "read_file /srv/project/a run",
                "remove_file /srv/project/a run",
                "read_file /home/ann/.ssh/id_ed25519 denied",
                "write_file /srv/project/secret refused",
            ]
        );
    }

    #[tokio::test]
    async fn in_a_sandbox_its_files_are_its_own() {
        for path in ["/etc/passwd", "/home/agent/.ssh/id_ed25519"] {
            assert!(
                may(
                    BackendDescription::sealed(BackendKind::Native),
                    PathAct::Write,
                    path
                )
                .await
            );
        }
    }
}
