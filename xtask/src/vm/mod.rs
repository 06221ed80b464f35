//! Real machines: Debian with its own kernel and systemd, in emulation, and the stories that only
//! such a machine can tell.
//!
//! A container shares our kernel and has no service manager of its own, so what breaks there is not
//! seen here. Emulation is slow and needs nothing of this machine: no KVM, no loop device, no
//! network but a port on loopback.

mod guest;
mod image;
mod payload;
mod platform;
mod stories;
mod table;

use std::time::Duration;

use crate::arguments::VmOptions;
use crate::failure::Failure;
use crate::needs::Part;
use crate::{machine, needs, say};
use guest::Guest;
use image::{Debian, Image};
use payload::Payload;
use platform::Platform;
use stories::Stage;
use table::Table;

/// A machine of which nothing is heard for so long does not come up any more.
const LONGEST_BOOT: Duration = Duration::from_secs(900);

pub(crate) fn run(options: &VmOptions) -> Result<(), Failure> {
    let stories = stories::chosen(&options.only)?;
    let releases = releases(&options.debian)?;
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
    let payload = Payload::make(options)?;
    let mut table = Table::default();
    for debian in releases {
        say::step(&format!("Debian {}", debian.number()));
        let image = Image::provide(debian)?;
        let guest = Guest::boot(&image, &payload)?;
        table.note(&debian, &guest.describe()?);
        if options.by_hand {
            guest.wait_for_a_person()?;
            continue;
        }
        let mut stage = Stage {
            guest,
            platform: Platform::start(&payload)?,
            cuts: options.cuts,
        };
        for story in &stories {
            say::step(&format!("Debian {}: {}", debian.number(), story.name));
            let result = story.tell(&mut stage);
            table.add(&debian, story.name, result);
            if !stage.guest.answers() {
                say::note("the machine does not answer any more: it is started again");
                stage.guest.restart()?;
            }
        }
    }
    table.end()
}

fn releases(asked: &[String]) -> Result<Vec<Debian>, Failure> {
    if asked.is_empty() {
        return Ok(Debian::ALL.to_vec());
    }
    asked.iter().map(|number| number.parse()).collect()
}
