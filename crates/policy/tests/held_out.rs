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
    alder, birch, cedar, dogwood, elder, fir, hazel, juniper, larch, maple, oak, poplar, rowan,
    spruce, willow
);
