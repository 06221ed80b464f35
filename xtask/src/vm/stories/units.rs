//! Services: installed, restarted and killed while a sandbox lives.

use std::time::Instant;

use super::super::guest::{LONG, SHORT, Who};
use super::service::{Kind, Service};
use super::{Stage, Told, Untold, fine, wrong};

/// A service of each kind starts, answers, bounds its sandboxes, and is gone when it is taken back.
pub(super) fn units(stage: &mut Stage) -> Told {
    let mut figures = Vec::new();
    for (number, kind) in (100..).zip(Kind::ALL) {
        let begun = Instant::now();
        let service = Service::start(stage, kind, number)?;
        service.wait_active(stage, 0, LONG)?;
        let started = begun.elapsed().as_secs_f64();
        service.shell(stage, "echo works-$((40 + 2))", "works-42")?;
        let group = living_group(stage, &service)?;
        bounded(stage, &group)?;
        let health = "curl -sf --max-time 20 http://127.0.0.1:9119/health";
        fine(
            Who::Root,
            "ask /health",
            stage.guest.run(Who::Root, health, SHORT)?,
        )?;
        let score = score(stage, &service)?;
        service.uninstall(stage)?;
        figures.push(format!(
            "{}: ready after {started:.0} s, exposure {score}",
            kind.name()
        ));
    }
    Ok(figures.join("; "))
}

/// What is too large for the sandbox ends inside of it, and the gateway does not notice.
pub(super) fn oom(stage: &mut Stage) -> Told {
    let service = Service::start(stage, Kind::System, 110)?;
    let pid = service.wait_active(stage, 0, LONG)?;
    let greedy = "python3 -c \"x = bytearray(1 << 30); print(len(x))\"; echo after-$((40 + 2))";
    let reply = service.shell(stage, greedy, "after-42");
    if let Ok(reply) = &reply
        && reply.contains("1073741824")
    {
        return wrong(format!("256 MB are allowed, and it had 1 GB: {reply}"));
    }
    // Either the command or its whole sandbox may be ended; the chat goes on in both cases.
    service.shell(stage, "echo alive-$((40 + 2))", "alive-42")?;
    let now = service.wait_active(stage, 0, SHORT)?;
    if now != pid {
        return wrong("the gateway was started again");
    }
    let log = "journalctl -k --no-pager -q | grep -c 'Memory cgroup out of memory' || true";
    let said = stage.guest.run(Who::Root, log, SHORT)?;
    service.uninstall(stage)?;
    Ok(format!(
        "the gateway lives on; {} kills by the kernel's group limit",
        said.out.trim()
    ))
}

/// A restart: what runs in a sandbox goes on, bounded as before, and the gateway adopts it.
pub(super) fn restart(stage: &mut Stage) -> Told {
    interrupted(stage, 120, "restart")
}

/// The same when the gateway is killed, and systemd has to start it again.
pub(super) fn kill(stage: &mut Stage) -> Told {
    interrupted(stage, 130, "kill --signal=KILL --kill-who=main")
}

fn interrupted(stage: &mut Stage, user: u32, verb: &str) -> Told {
    let mut figures = Vec::new();
    let mut wrongs = Vec::new();
    for (user, kind) in (user..).zip(Kind::ALL) {
        match interrupted_once(stage, kind, user, verb) {
            Ok(figure) => figures.push(figure),
            Err(Untold::Failed(why)) => wrongs.push(why),
            Err(other) => return Err(other),
        }
    }
    if wrongs.is_empty() {
        Ok(figures.join("; "))
    } else {
        wrong(wrongs.join(" // "))
    }
}

fn interrupted_once(stage: &mut Stage, kind: Kind, user: u32, verb: &str) -> Told {
    let service = Service::start(stage, kind, user)?;
    let outcome = survives(stage, &service, verb);
    // Also after a failure: the next kind needs the port and the platform.
    let cleared = service.uninstall(stage);
    let figure = outcome?;
    cleared?;
    Ok(figure)
}

fn survives(stage: &mut Stage, service: &Service, verb: &str) -> Told {
    let kind = service.kind.name();
    let gateway = service.wait_active(stage, 0, LONG)?;
    // The user's number tells this sandbox's command from those of other services.
    let length = 40_000 + service.user;
    let command = format!("(sleep {length} >/dev/null 2>&1 &); echo started-$((40 + 2))");
    service.shell(stage, &command, "started-42")?;
    let before = pid_of(stage, length)?;
    let group = group_of(stage, before)?;
    bounded(stage, &group)?;

    let begun = Instant::now();
    service.systemctl(stage, verb)?;
    service.wait_active(stage, gateway, LONG)?;
    let back = begun.elapsed().as_secs_f64();

    let after = pid_of(stage, length)?;
    if after != before {
        return wrong(format!("{kind}: the command is another process now"));
    }
    bounded(stage, &group_of(stage, after)?)?;
    // The same sandbox, which is seen by what runs in it.
    let look = format!("pgrep -f \"sleep {length}\" >/dev/null && echo adopted-$((40 + 2))");
    service.shell(stage, &look, "adopted-42")?;
    // A new one beside it is bounded as well.
    let other = service.with_user(service.user + 1000);
    other.shell(
        stage,
        "(sleep 77077 >/dev/null 2>&1 &); echo new-$((40 + 2))",
        "new-42",
    )?;
    let newer = pid_of(stage, 77_077)?;
    bounded(stage, &group_of(stage, newer)?)?;
    Ok(format!("{kind}: back after {back:.0} s"))
}

/// The one process that sleeps so long.
fn pid_of(stage: &Stage, length: u32) -> Result<u32, Untold> {
    let line = format!("pgrep -x -f 'sleep {length}'");
    let said = stage.guest.run(Who::Root, &line, SHORT)?;
    match said.out.trim().parse() {
        Ok(pid) => Ok(pid),
        Err(_) => wrong(format!(
            "the command in the sandbox is gone: {}",
            said.all()
        )),
    }
}

fn group_of(stage: &Stage, pid: u32) -> Result<String, Untold> {
    let line = format!("sed -n 's/^0:://p' /proc/{pid}/cgroup");
    let said = fine(
        Who::Root,
        "read a group",
        stage.guest.run(Who::Root, &line, SHORT)?,
    )?;
    Ok(said.out.trim().to_owned())
}

/// The group of the sandbox of this service's chat.
fn living_group(stage: &mut Stage, service: &Service) -> Result<String, Untold> {
    let length = 50_000 + service.user;
    let command = format!("(sleep {length} >/dev/null 2>&1 &); echo slept-$((40 + 2))");
    service.shell(stage, &command, "slept-42")?;
    let pid = pid_of(stage, length)?;
    group_of(stage, pid)
}

/// A limit on memory and one on processes, here or above, below the service itself.
fn bounded(stage: &Stage, group: &str) -> Result<(), Untold> {
    let script = format!(
        "g='{group}'; m=max; p=max; while [ -n \"$g\" ]; do \
         case \"$g\" in *.service|*.scope) break;; esac; \
         a=$(cat /sys/fs/cgroup$g/memory.max 2>/dev/null || echo max); [ \"$a\" = max ] || m=$a; \
         a=$(cat /sys/fs/cgroup$g/pids.max 2>/dev/null || echo max); [ \"$a\" = max ] || p=$a; \
         g=${{g%/*}}; done; echo $m $p"
    );
    let said = fine(
        Who::Root,
        "read limits",
        stage.guest.run(Who::Root, &script, SHORT)?,
    )?;
    if said.out.contains("max") {
        return wrong(format!(
            "the sandbox in {group} is not bounded (memory, processes): {}",
            said.out.trim()
        ));
    }
    Ok(())
}

/// What `systemd-analyze security` makes of the unit: 0 is closed, 10 is open.
fn score(stage: &Stage, service: &Service) -> Result<String, Untold> {
    let manager = match service.kind {
        Kind::User => "--user",
        Kind::System | Kind::RunAs => "--system",
    };
    let line = format!(
        "systemd-analyze security {manager} --no-pager {} | tail -n 1",
        service.unit
    );
    let who = service.kind.who();
    let said = stage.guest.run(who, &line, LONG)?;
    let score = said
        .out
        .split_whitespace()
        .find(|word| word.parse::<f64>().is_ok());
    Ok(score.unwrap_or("unknown").to_owned())
}
