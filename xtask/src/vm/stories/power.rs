//! Power cuts in the middle of traffic.
//!
//! The platform outlives the machine and knows what it was told: a message it was told we have is
//! never sent again, so it must be on the disk by then.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::super::guest::{GuestUser, LONG, SHORT};
use super::super::platform::TrafficServer;
use super::service::{GuestService, ServiceKind};
use super::{StoryContext, StoryError, StoryResult, expect_success, fail};
use crate::say;

/// People who talk to the model, people who run commands, and letters one may have open.
const FLOW: &str = "flow 5 2 3";
/// When every letter has its answer, and for so many seconds nothing came, the count of a cut is made. What
/// comes later still (an answer again, a doubt) is in the sum at the end.
const QUIET: u64 = 12;
/// So long is waited for a letter without an answer, and at the end for whatever may come.
const LETTER_WAIT_SECONDS: u64 = 90;
/// How much is acknowledged before a cut, at least; it varies, so that cuts fall differently.
const BEFORE_A_CUT: u32 = 8;

#[derive(Debug, Default)]
struct CutTally {
    counts: BTreeMap<String, u64>,
    bad: Vec<String>,
    boot: Duration,
    /// Of all cuts: traffic, cut, boot, start and count.
    cycles: Duration,
}

pub(super) fn power(context: &mut StoryContext) -> StoryResult {
    if context.cuts == 0 {
        return Err(StoryError::Skipped("--cuts 0 was given".to_owned()));
    }
    let service = GuestService::start(context, ServiceKind::System, 140)?;
    service.wait_active(context, 0, LONG)?;
    prepare_boots(context, &service)?;
    let mut sum = CutTally::default();
    for cut in 1..=context.cuts {
        let begun = Instant::now();
        sum.add(&format!("cut {cut}"), &one_cut(context, &service, cut)?);
        sum.boot += context.guest.boot_time();
        sum.cycles += begun.elapsed();
    }
    let late = context
        .platform
        .ask(&format!("sum {LETTER_WAIT_SECONDS}"))?;
    say::note(&format!("all cuts: {late}"));
    sum.replace_counts(&late);
    let twice = ran_twice(context)?;
    if !twice.is_empty() {
        sum.bad.push(format!("commands that ran twice: {twice}"));
    }
    let intact = integrity(context)?;
    if intact != "ok" {
        sum.bad.push(format!("the store: {intact}"));
    }
    service.uninstall(context)?;
    let text = sum.text(context.cuts);
    if sum.bad.is_empty() {
        Ok(text)
    } else {
        fail(format!("{text}; {}", sum.bad.join("; ")))
    }
}

/// Traffic, the cut, and the count when the machine is back.
fn one_cut(
    context: &mut StoryContext,
    service: &GuestService,
    cut: u32,
) -> Result<String, StoryError> {
    context.platform.ask(FLOW)?;
    let enough = u64::from(BEFORE_A_CUT + cut * 7 % 23);
    let end = Instant::now() + LONG;
    loop {
        let progress = context.platform.ask("progress")?;
        let acknowledged = progress.split(' ').nth(1);
        let acknowledged: u64 = acknowledged.and_then(|n| n.parse().ok()).unwrap_or(0);
        if acknowledged >= enough {
            break;
        }
        if Instant::now() > end {
            return fail(format!("cut {cut}: the traffic does not flow: {progress}"));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    context.guest.cut_power()?;
    context.platform.ask("dry")?;
    context.guest.power_on()?;
    context.platform.connect(&context.guest)?;
    let begun = Instant::now();
    service.wait_active(context, 0, LONG)?;
    let active = begun.elapsed().as_secs_f64();
    let settled = context
        .platform
        .ask(&format!("settle {QUIET} {LETTER_WAIT_SECONDS}"))?;
    let boot = context.guest.boot_time().as_secs_f64();
    say::note(&format!(
        "cut {cut}: boot {boot:.0} s, active {active:.0} s later; {settled}"
    ));
    Ok(settled)
}

/// A machine whose network is not there yet at boot has its own story; here the gateway starts
/// when it is, so that what is lost is lost by the cut. And only root logs in, without a session, so that no
/// manager of a user takes its seconds of each boot.
fn prepare_boots(context: &StoryContext, service: &GuestService) -> Result<(), StoryError> {
    let wait = TrafficServer::wait_inside();
    let script = format!(
        "set -e
cat >/usr/local/bin/wait-for-platform <<'END'
#!/bin/bash
{wait}
END
chmod 755 /usr/local/bin/wait-for-platform
cat >/etc/systemd/system/platform.service <<'END'
[Service]
Type=oneshot
ExecStart=/usr/local/bin/wait-for-platform
END
mkdir -p /etc/systemd/system/{unit}.d
printf '[Unit]\\nAfter=platform.service\\nWants=platform.service\\n' \
    >/etc/systemd/system/{unit}.d/platform.conf
systemctl daemon-reload
loginctl disable-linger person
echo 'UsePAM no' >/etc/ssh/sshd_config.d/boots.conf
sync
",
        unit = service.unit
    );
    let said = context.guest.run(GuestUser::Root, &script, LONG)?;
    expect_success(GuestUser::Root, "prepare the boot", said).map(drop)
}

/// Commands write their word down, so one that ran twice stands there twice.
fn ran_twice(context: &StoryContext) -> Result<String, StoryError> {
    let script =
        "find /srv/bot /var/lib -name ran -type f -exec cat {} + 2>/dev/null | sort | uniq -d";
    let said = context.guest.run(GuestUser::Root, script, LONG)?;
    Ok(said.out.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn integrity(context: &StoryContext) -> Result<String, StoryError> {
    let script = "for f in $(find /srv/bot -name '*.db' -o -name '*.sqlite' -o -name '*.sqlite3'); do \
                  sqlite3 \"$f\" 'pragma integrity_check'; done | sort -u";
    let said = expect_success(
        GuestUser::Root,
        "check the store",
        context.guest.run(GuestUser::Root, script, SHORT)?,
    )?;
    Ok(said.out.trim().to_owned())
}

impl CutTally {
    /// The sum at the end counts what came after the count of its own cut, too.
    fn replace_counts(&mut self, sum: &str) {
        self.counts.clear();
        self.add("all cuts", sum);
    }

    fn add(&mut self, when: &str, settled: &str) {
        let pairs = settled.split(' ').filter_map(|word| word.split_once('='));
        for (key, value) in pairs {
            let Ok(count) = value.parse::<u64>() else {
                continue;
            };
            *self.counts.entry(key.to_owned()).or_default() += count;
            let promised = ["lost", "waiting", "repeated_unmarked", "doubted"];
            if promised.contains(&key) && count > 0 {
                self.bad.push(format!("{when}: {key} {count}"));
            }
        }
    }

    fn text(&self, cuts: u32) -> String {
        let count = |key: &str| self.counts.get(key).copied().unwrap_or(0);
        format!(
            "{cuts} cuts, {} messages, {} acknowledged: {} answered, {} reported, {} lost; \
             {} repeated with the mark, {} without; {} answered and doubted; \
             on average boot {:.0} s, whole cycle {:.0} s",
            count("sent"),
            count("acknowledged"),
            count("answered"),
            count("reported"),
            count("lost"),
            count("repeated_marked"),
            count("repeated_unmarked"),
            count("doubted"),
            self.boot.as_secs_f64() / f64::from(cuts),
            self.cycles.as_secs_f64() / f64::from(cuts),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_promised_and_broken_is_told_with_its_cut() {
        let mut sum = CutTally::default();
        sum.add(
            "cut 1",
            "settled sent=9 acknowledged=8 answered=8 lost=0 doubted=0 words=",
        );
        assert!(sum.bad.is_empty());
        sum.add(
            "cut 2",
            "settled sent=9 acknowledged=8 answered=6 lost=2 doubted=0 words=w1,w2",
        );
        assert_eq!(sum.bad, ["cut 2: lost 2"]);
        assert!(
            sum.text(2)
                .contains("18 messages, 16 acknowledged: 14 answered")
        );
        sum.replace_counts(
            "settled sent=18 acknowledged=16 answered=14 lost=2 repeated_unmarked=1",
        );
        assert_eq!(
            sum.bad,
            [
                "cut 2: lost 2",
                "all cuts: lost 2",
                "all cuts: repeated_unmarked 1"
            ]
        );
        assert!(
            sum.text(2)
                .contains("18 messages, 16 acknowledged: 14 answered")
        );
    }
}
