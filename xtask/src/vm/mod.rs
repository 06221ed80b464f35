//! Real machines: Debian with its own kernel and systemd, in emulation, and the stories that only
//! such a machine can show.
//!
//! A container shares our kernel and has no service manager of its own, so what breaks there is not
//! seen here. Emulation is slow and needs nothing of this machine: no KVM, no loop device, no
//! network but a port on loopback.

mod children;
mod guest;
mod image;
mod initrd;
mod payload;
mod platform;
mod qemu;
mod stories;
mod table;

use std::time::Duration;

use crate::arguments::VmOptions;
use crate::dist::DistTarget;
use crate::failure::ChoreFailure;
use crate::needs::NeedGroup;
use crate::{machine, needs, say};
use guest::VmGuest;
pub(crate) use image::ubuntu_archive;
use image::{OsRelease, VmImage};
use payload::GuestPayload;
use platform::TrafficServer;
use stories::{StoryContext, StoryError};
use table::StoryTable;

/// A machine of which nothing is heard for so long does not come up any more.
const LONGEST_BOOT: Duration = Duration::from_secs(900);

pub(crate) fn run(options: &VmOptions) -> Result<(), ChoreFailure> {
    let stories = stories::chosen(&options.only)?;
    let releases = releases(&options.machines)?;
    say::step("What real machines need from this one");
    let may_install = machine::is_root() && !options.no_install;
    let mut groups = vec![NeedGroup::Vm];
    if releases.contains(&OsRelease::Debian13Arm64) {
        groups.push(NeedGroup::VmArm64);
    }
    let lacking = needs::provide(&groups, may_install);
    if let Some(one) = lacking.into_iter().next() {
        return Err(ChoreFailure::Lacking {
            what: one.text,
            remedy: "machines are emulated by QEMU and made by mmdebstrap".to_owned(),
        });
    }
    guest::remove_leftovers()?;
    let mut images = Vec::new();
    for release in releases {
        say::step(&format!("The disk of {}", release.name()));
        images.push((release, VmImage::provide(release)?));
    }
    let mut payloads: Vec<(DistTarget, GuestPayload)> = Vec::new();
    for target in images.iter().map(|(release, _)| release.target()) {
        if payloads.iter().all(|(made, _)| *made != target) {
            payloads.push((target, GuestPayload::make(options, target)?));
        }
    }
    let mut table = StoryTable::default();
    for (release, image) in images {
        say::step(release.name());
        let target = release.target();
        let payload = payloads.iter().find(|(made, _)| *made == target);
        let (_, payload) = payload.expect("one was made for every machine");
        let guest = VmGuest::boot(release, &image, payload)?;
        table.note(release, &guest.describe()?);
        if options.by_hand {
            guest.wait_for_a_person()?;
            continue;
        }
        let mut context = StoryContext {
            guest,
            platform: TrafficServer::start(payload)?,
            cuts: options.cuts,
        };
        for story in &stories {
            say::step(&format!("{}: {}", release.name(), story.name));
            let result = story.run(&mut context);
            if let Err(StoryError::Failed(_)) = &result {
                keep_journal(&context.guest, release, story.name);
            }
            table.add(release, story.name, result);
            if !context.guest.answers() {
                say::note("the machine does not answer any more: it is started again");
                context.guest.restart()?;
            }
        }
    }
    table.end()
}

/// What the machine wrote down, for whoever wants to know why.
fn keep_journal(guest: &VmGuest, release: OsRelease, story: &str) {
    let script = "journalctl -b --no-pager -o short-monotonic -n 2000";
    let kept = guest.run(guest::GuestUser::Root, script, guest::LONG);
    let kept = kept.and_then(|said| {
        let file = image::folder()?.join(format!("failed-{}-{story}.log", release.name()));
        let written = std::fs::write(&file, said.out);
        written.map_err(ChoreFailure::file(format!("write {}", file.display())))?;
        Ok(file)
    });
    match kept {
        Ok(file) => say::note(&format!("its journal is kept: {}", file.display())),
        Err(why) => say::note(&format!("its journal is lost: {why}")),
    }
}

fn releases(asked: &[String]) -> Result<Vec<OsRelease>, ChoreFailure> {
    if asked.is_empty() {
        return Ok(OsRelease::ALL.to_vec());
    }
    asked.iter().map(|name| name.parse()).collect()
}
