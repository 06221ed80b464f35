//! One download after the other, each way in its turn: a machine that is busy for a second is then busy for
//! all of them.

use crate::load::{self, Way};

const ROUNDS: usize = 15;

/// The first way is what the others are compared with, round by round.
pub(crate) async fn run(ways: &[(&str, Option<u16>)], origin: u16) {
    let mut rates = vec![Vec::new(); ways.len()];
    for _ in 0..ROUNDS {
        for (rates, &(_, proxy)) in rates.iter_mut().zip(ways) {
            rates.push(load::bulk(Way { origin, proxy }).await);
        }
    }
    let direct = rates[0].clone();
    for (rates, (name, _)) in rates.iter().zip(ways) {
        let shares = rates
            .iter()
            .zip(&direct)
            .map(|(rate, direct)| rate / direct);
        println!(
            "bulk      {name:9} {:.2} GB/s, {:.0} % of direct (medians of {ROUNDS})",
            median(rates.iter().copied()) / 1e9,
            median(shares) * 100.0,
        );
    }
}

fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_unstable_by(f64::total_cmp);
    figures[figures.len() / 2]
}
