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
use crate::failure::Failure;
use crate::needs::Part;
use crate::{machine, needs, say};
use guest::Guest;
use image::{Image, Release};
use payload::Payload;
use platform::Platform;
use stories::{StoryContext, StoryError};
use table::Table;

/// A machine of which nothing is heard for so long does not come up any more.
const LONGEST_BOOT: Duration = Duration::from_secs(900);

pub(crate) fn run(options: &VmOptions) -> Result<(), Failure> {
    let stories = stories::chosen(&options.only)?;
    let releases = releases(&options.machines)?;
    say::step("What real machines need from this one");
    let may_install = machine::is_root() && !options.no_install;
    let lacking = needs::provide(&[Part::Vm], may_install);
    if let Some(one) = lacking.into_iter().next() {
        return Err(Failure::Lacking {
            what: one.text,
            remedy: "machines are emulated by QEMU and made by mmdebstrap".to_owned(),
        });
    }
    guest::remove_leftovers()?;
    let mut images = Vec::new();
    for release in releases {
        say::step(&format!("The disk of {}", release.name()));
        images.push((release, Image::provide(release)?));
    }
    let payload = Payload::make(options)?;
    let mut table = Table::default();
    for (release, image) in images {
        say::step(release.name());
        let guest = Guest::boot(&image, &payload)?;
        table.note(release, &guest.describe()?);
        if options.by_hand {
            guest.wait_for_a_person()?;
            continue;
        }
        let mut context = StoryContext {
            guest,
            platform: Platform::start(&payload)?,
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
fn keep_journal(guest: &Guest, release: Release, story: &str) {
    let script = "journalctl -b --no-pager -o short-monotonic -n 2000";
    let kept = guest.run(guest::Who::Root, script, guest::LONG);
    let kept = kept.and_then(|said| {
        let file = image::folder()?.join(format!("failed-{}-{story}.log", release.name()));
        let written = std::fs::write(&file, said.out);
        written.map_err(Failure::file(format!("write {}", file.display())))?;
        Ok(file)
    });
    match kept {
        Ok(file) => say::note(&format!("its journal is kept: {}", file.display())),
        Err(why) => say::note(&format!("its journal is lost: {why}")),
    }
}

fn releases(asked: &[String]) -> Result<Vec<Release>, Failure> {
    if asked.is_empty() {
        return Ok(Release::ALL.to_vec());
    }
    asked.iter().map(|name| name.parse()).collect()
}
