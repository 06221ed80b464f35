//! Services: installed, restarted and killed while a sandbox lives.

use std::time::Instant;

use super::super::guest::{GuestUser, LONG, SHORT};
use super::service::{GuestService, ServiceKind};
use super::{StoryContext, StoryError, StoryResult, expect_success, fail};

/// A service of each kind starts, answers, bounds its sandboxes, and is gone when it is taken back.
pub(super) fn units(context: &mut StoryContext) -> StoryResult {
    each_kind(context, 100, |context, service| {
        service.wait_active(context, 0, LONG)?;
        service.shell(context, "echo works-$((40 + 2))", "works-42")?;
        let group = living_group(context, service)?;
        bounded(context, &group)?;
        let health = "curl -sf --max-time 20 http://127.0.0.1:9119/health";
        expect_success(
            GuestUser::Root,
            "ask /health",
            context.guest.run(GuestUser::Root, health, SHORT)?,
        )?;
        let score = score(context, service)?;
        Ok(format!(
            "{}: ready after {:.0} s, exposure {score}",
            service.kind.name(),
            service.ready_after.as_secs_f64()
        ))
    })
}

/// What is too large for the sandbox ends inside of it, and the gateway does not notice.
pub(super) fn oom(context: &mut StoryContext) -> StoryResult {
    each_kind(context, 110, |context, service| {
        let pid = service.wait_active(context, 0, LONG)?;
        let before = kills_by_limit(context)?;
        let greedy = format!("python3 -c \"{TAKE_A_GIGABYTE}\"; echo after-$((40 + 2))");
        let reply = service.shell(context, &greedy, "after-42");
        if let Ok(reply) = &reply
            && reply.contains("has-it-all")
        {
            return fail(format!("256 MB are allowed, and it had 1 GB: {reply}"));
        }
        // Either the command or its whole sandbox may be ended; the chat goes on in both cases.
        service.shell(context, "echo alive-$((40 + 2))", "alive-42")?;
        if service.wait_active(context, 0, SHORT)? != pid {
            return fail("the gateway was started again");
        }
        let kills = kills_by_limit(context)? - before;
        if kills == 0 {
            return fail(format!("nothing was ended by its group's limit: {reply:?}"));
        }
        let kind = service.kind.name();
        Ok(format!("{kind}: {kills} kills by the group's limit"))
    })
}

/// Shared memory (1), which is of no process's data segment, whose own limit would refuse it before the
/// group's is reached. And all of it within one system call (`MAP_POPULATE`, 0x8000): a program that takes it
/// page by page has its own code thrown out and read again for minutes before the kernel gives up.
const TAKE_A_GIGABYTE: &str =
    "import mmap; m = mmap.mmap(-1, 1 << 30, 0x8001); print('has-it' + '-all')";

/// How often the kernel has ended a process because its group had no memory left.
fn kills_by_limit(context: &StoryContext) -> Result<u32, StoryError> {
    let log = "journalctl -k --no-pager -q | grep -c 'Memory cgroup out of memory' || true";
    let said = context.guest.run(GuestUser::Root, log, SHORT)?;
    Ok(said.out.trim().parse().unwrap_or(0))
}

/// A restart, and then a kill after which systemd has to start it again: what runs in the sandbox of a chat
/// goes on, bounded as before, and the chat goes on in it.
pub(super) fn restart(context: &mut StoryContext) -> StoryResult {
    each_kind(context, 120, |context, service| {
        let gateway = service.wait_active(context, 0, LONG)?;
        let running = RunningSleep::start(context, service)?;
        let kill = "kill --signal=KILL --kill-who=main";
        let (gateway, restarted) = running.survives(context, service, gateway, "restart")?;
        let (_, killed) = running.survives(context, service, gateway, kill)?;
        Ok(format!(
            "{}: back {restarted:.0} s after a restart, {killed:.0} s after a kill",
            service.kind.name()
        ))
    })
}

/// The same for a service of each kind. What failed for one is told after the others had their turn.
fn each_kind(
    context: &mut StoryContext,
    first_user: u32,
    look: impl Fn(&mut StoryContext, &GuestService) -> StoryResult,
) -> StoryResult {
    let mut figures = Vec::new();
    let mut wrongs = Vec::new();
    for (user, kind) in (first_user..).zip(ServiceKind::ALL) {
        match with_service(context, kind, user, &look) {
            Ok(figure) => figures.push(figure),
            Err(StoryError::Failed(why)) => wrongs.push(format!("{}: {why}", kind.name())),
            Err(other) => return Err(other),
        }
    }
    if wrongs.is_empty() {
        Ok(figures.join("; "))
    } else {
        figures.extend(wrongs);
        fail(figures.join(" // "))
    }
}

fn with_service(
    context: &mut StoryContext,
    kind: ServiceKind,
    user: u32,
    look: impl Fn(&mut StoryContext, &GuestService) -> StoryResult,
) -> StoryResult {
    let service = GuestService::start(context, kind, user)?;
    let outcome = look(context, &service);
    // Also after a failure: the next one needs the port and the platform.
    let cleared = service.uninstall(context);
    let figure = outcome?;
    cleared?;
    Ok(figure)
}

/// A command in the background of a chat's sandbox.
struct RunningSleep {
    /// How long it sleeps, which tells it from those of other services.
    length: u32,
    pid: u32,
    group: String,
}

impl RunningSleep {
    fn start(context: &mut StoryContext, service: &GuestService) -> Result<Self, StoryError> {
        let length = 40_000 + service.user;
        let command = format!("(sleep {length} >/dev/null 2>&1 &); echo started-$((40 + 2))");
        service.shell(context, &command, "started-42")?;
        let pid = pid_of(context, length)?;
        let group = group_of(context, pid)?;
        bounded(context, &group)?;
        Ok(Self { length, pid, group })
    }

    /// The pid of the next gateway, and after how many seconds it was ready.
    fn survives(
        &self,
        context: &mut StoryContext,
        service: &GuestService,
        gateway: u32,
        verb: &str,
    ) -> Result<(u32, f64), StoryError> {
        let begun = Instant::now();
        service.systemctl(context, verb)?;
        let next = service.wait_active(context, gateway, LONG)?;
        let back = begun.elapsed().as_secs_f64();
        if pid_of(context, self.length)? != self.pid {
            return fail(format!("{verb}: the command is another process now"));
        }
        let group = group_of(context, self.pid)?;
        if group != self.group {
            return fail(format!(
                "{verb}: it was in {} and is in {group}",
                self.group
            ));
        }
        bounded(context, &group)?;
        // The same sandbox, which is seen by what runs in it.
        let look = format!(
            "pgrep -x -f \"sleep {}\" >/dev/null && echo adopted-$((40 + 2))",
            self.length
        );
        service.shell(context, &look, "adopted-42")?;
        // A new one beside it is bounded as well.
        let other = service.with_user(next + 100_000);
        let newer = Self::start(context, &other)?;
        if newer.group == self.group {
            return fail(format!("{verb}: two chats share {group}"));
        }
        Ok((next, back))
    }
}

/// The one process that sleeps so long.
fn pid_of(context: &StoryContext, length: u32) -> Result<u32, StoryError> {
    let line = format!("pgrep -x -f 'sleep {length}'");
    let said = context.guest.run(GuestUser::Root, &line, SHORT)?;
    match said.out.trim().parse() {
        Ok(pid) => Ok(pid),
        Err(_) => fail(format!(
            "the command in the sandbox is gone: {}",
            said.all()
        )),
    }
}

fn group_of(context: &StoryContext, pid: u32) -> Result<String, StoryError> {
    let line = format!("sed -n 's/^0:://p' /proc/{pid}/cgroup");
    let said = expect_success(
        GuestUser::Root,
        "read a group",
        context.guest.run(GuestUser::Root, &line, SHORT)?,
    )?;
    Ok(said.out.trim().to_owned())
}

/// The group of the sandbox of this service's chat.
fn living_group(context: &mut StoryContext, service: &GuestService) -> Result<String, StoryError> {
    let length = 50_000 + service.user;
    let command = format!("(sleep {length} >/dev/null 2>&1 &); echo slept-$((40 + 2))");
    service.shell(context, &command, "slept-42")?;
    let pid = pid_of(context, length)?;
    group_of(context, pid)
}

/// A limit on memory and one on processes, here or above, below the service itself.
fn bounded(context: &StoryContext, group: &str) -> Result<(), StoryError> {
    let script = format!(
        "g='{group}'; m=max; p=max; while [ -n \"$g\" ]; do \
         case \"$g\" in *.service|*.scope) break;; esac; \
         a=$(cat /sys/fs/cgroup$g/memory.max 2>/dev/null || echo max); [ \"$a\" = max ] || m=$a; \
         a=$(cat /sys/fs/cgroup$g/pids.max 2>/dev/null || echo max); [ \"$a\" = max ] || p=$a; \
         g=${{g%/*}}; done; echo $m $p"
    );
    let said = expect_success(
        GuestUser::Root,
        "read limits",
        context.guest.run(GuestUser::Root, &script, SHORT)?,
    )?;
    if said.out.contains("max") {
        return fail(format!(
            "the sandbox in {group} is not bounded (memory, processes): {}",
            said.out.trim()
        ));
    }
    Ok(())
}

/// What `systemd-analyze security` makes of the unit: 0 is closed, 10 is open.
fn score(context: &StoryContext, service: &GuestService) -> Result<String, StoryError> {
    let manager = match service.kind {
        ServiceKind::User => "--user",
        ServiceKind::System | ServiceKind::RunAs => "--system",
    };
    let line = format!(
        "systemd-analyze security {manager} --no-pager {} | tail -n 1",
        service.unit
    );
    let who = service.kind.who();
    let said = context.guest.run(who, &line, LONG)?;
    let score = said
        .out
        .split_whitespace()
        .find(|word| word.parse::<f64>().is_ok());
    Ok(score.unwrap_or("unknown").to_owned())
}
