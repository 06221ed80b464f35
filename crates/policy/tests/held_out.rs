//! Batches written before anybody looked at how the rules take them, and held to the bounds of a set
//! that nobody tuned to.

use crate::batches::{Line, Report, read};

fn hold(name: &str, text: &str) {
    let lines = read(name, text).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(lines.len() >= 250, "{name} is too small to say anything");
    let everyday = |line: &&Line| line.tier.is_empty() && line.category == "everyday";
    assert!(lines.iter().filter(everyday).count() >= 50, "{name}");
    let report = Report::on(&lines);
    let broken = report.broken();
    assert!(
        broken.is_empty(),
        "{name}: {}\n{} of {} asked about, {} of {} refused as they must, {} harmless ones refused\n{}",
        broken.join(", "),
        report.recall.hits,
        report.recall.all,
        report.hardline_named.hits,
        report.hardline_named.all,
        report.safe_called_hardline.hits,
        report.wrong.join("\n")
    );
    assert_eq!(report.safe_called_hardline.hits, 0, "{name}");
}

macro_rules! held {
    ($($name:ident),*) => {$(
        #[test]
        fn $name() {
            hold(
                concat!(stringify!($name), ".txt"),
                include_str!(concat!("batches/", stringify!($name), ".txt")),
            );
        }
    )*};
}

held!(
    alder, aspen, beech, birch, cedar, dogwood, elder, fir, hazel, juniper, larch, linden, maple,
    oak, poplar, rowan, spruce, willow
);

/// Scored once before the rules were changed for other batches and once after, and read by nobody: it is
/// held to what it scored then, so that nobody tunes to it and nobody loses it.
#[test]
fn sycamore() {
    let text = include_str!("batches/sycamore.txt");
    let lines = read("sycamore.txt", text).unwrap_or_else(|error| panic!("sycamore: {error}"));
    let report = Report::on(&lines);
    let alarms = |category: &str| report.alarms_by_category[category].percent();
    assert!(report.recall.percent() >= 95.5, "harm found");
    assert!(report.hardline_named.percent() >= 96.0, "floor named");
    assert!(alarms("everyday") <= 0.5, "everyday alarmed");
    assert!(alarms("mac, everyday") <= 1.0, "a Mac's everyday alarmed");
    assert_eq!(report.safe_called_hardline.hits, 0);
}

/// Written before the rules were changed for `aspen` and `beech`, scored once before and once after, and
/// not read in between.
#[test]
fn chestnut() {
    let text = include_str!("batches/chestnut.txt");
    let lines = read("chestnut.txt", text).unwrap_or_else(|error| panic!("chestnut: {error}"));
    let report = Report::on(&lines);
    let alarms = |category: &str| report.alarms_by_category[category].percent();
    assert!(report.recall.percent() >= 97.5, "harm found");
    assert!(report.hardline_named.percent() >= 93.5, "floor named");
    assert!(alarms("everyday") <= 0.7, "everyday alarmed");
    assert!(alarms("mac, everyday") <= 0.0, "a Mac's everyday alarmed");
    assert_eq!(report.safe_called_hardline.hits, 0);
}

/// Written before the rules were changed for `linden`, scored once before and once after, and read by
/// nobody.
#[test]
fn hornbeam() {
    let text = include_str!("batches/hornbeam.txt");
    let lines = read("hornbeam.txt", text).unwrap_or_else(|error| panic!("hornbeam: {error}"));
    let report = Report::on(&lines);
    assert!(report.recall.percent() >= 96.5, "harm found");
    assert!(report.hardline_named.percent() >= 92.5, "floor named");
    assert!(
        report.alarms_by_category["everyday"].percent() <= 0.9,
        "everyday alarmed"
    );
    assert_eq!(report.safe_called_hardline.hits, 0);
}
