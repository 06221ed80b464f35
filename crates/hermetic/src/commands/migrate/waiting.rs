//! What Hermes left in a home that is ours as well, and nobody has taken over yet.

use std::fmt;

use hermetic_app as app;
use hermetic_config::ConfigInputs;
use hermetic_schedule::HermesJobs;

use super::hermes_home::{HermesHome, HermesPairings};
use super::{count, hermes_gateway, jobs, take_over};
use crate::failure::CommandFailure;

/// People and jobs.
pub(crate) struct WaitingOfHermes {
    pairings: Vec<HermesPairings>,
    jobs: HermesJobs,
    people: usize,
    new_jobs: usize,
    hermes_runs: bool,
}

impl WaitingOfHermes {
    /// Nothing where Hermes left nobody and nothing, which is found out without making a store.
    pub(crate) async fn look(inputs: &ConfigInputs) -> Result<Option<Self>, CommandFailure> {
        let hermes = HermesHome::at(inputs.home.root());
        let (pairings, _) = hermes.pairings(app::named_on);
        let jobs = jobs::read(&hermes);
        let has_people = pairings.iter().any(|one| !one.people.is_empty());
        if !has_people && jobs.jobs.is_empty() {
            return Ok(None);
        }
        let config = hermetic_config::load(inputs)?;
        app::installation(config.home())?;
        let store = app::store(&config).await?;
        let pairing = app::pairing(&store);
        let mut people = 0;
        for one in &pairings {
            people += pairing.would_adopt(one.platform, &one.people).await?.len();
        }
        let new_jobs = jobs::missing(&jobs, &store.scheduled_jobs()).await?;
        let hermes_runs = !hermes_gateway::running(&hermes, Some(&config)).is_empty();
        let found = Self {
            pairings,
            jobs,
            people,
            new_jobs,
            hermes_runs,
        };
        Ok((people + new_jobs > 0).then_some(found))
    }

    pub(crate) async fn take_over(&self, inputs: &ConfigInputs) -> Result<(), CommandFailure> {
        take_over::take_over(inputs, &[], &[], &self.pairings).await?;
        jobs::take_over(inputs, &self.jobs, self.hermes_runs).await
    }
}

impl fmt::Display for WaitingOfHermes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let people = count(self.people, "person", "people");
        let jobs = count(self.new_jobs, "job", "jobs");
        match (self.people, self.new_jobs) {
            (_, 0) => write!(out, "{people} let in by a code"),
            (0, _) => write!(out, "{jobs} on a schedule"),
            _ => write!(out, "{people} let in by a code, {jobs} on a schedule"),
        }
    }
}
