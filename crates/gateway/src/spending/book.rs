//! The book in which spending is counted.
//!
//! Sums of the day are in memory, under one lock, and in the store: what is let through is in both before it
//! happens. So fifty turns at once see each other, and a gateway that is killed has forgotten nothing.

use std::collections::HashMap;

use hermetic_store::{SpendingAmounts, SpendingDay, SpendingRows, SpendingScope, StoreError};
use hermetic_types::SharedClock;
use jiff::tz::TimeZone;
use tokio::sync::Mutex;

use super::limits::{AskedFor, DayLimits, ReachedLimit, SpendingLimits};

#[derive(Debug)]
pub(crate) struct SpendingBook {
    rows: SpendingRows,
    limits: SpendingLimits,
    clock: SharedClock,
    today: Mutex<OpenDay>,
    /// Whether other gateways spend beside this one.
    is_shared: bool,
}

/// The sums of one day, as far as somebody asked for them.
#[derive(Debug, Default)]
pub(super) struct OpenDay {
    date: String,
    sums: HashMap<SpendingScope, SpendingDay>,
}

/// What became of lifting a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LiftOutcome {
    Lifted,
    /// It was lifted before on this day.
    Already,
    /// Nobody of that name has spent or asked for anything today.
    Unknown,
}

/// Why something was not let through.
#[derive(Debug)]
pub(super) enum NotReserved {
    Reached {
        scope: SpendingScope,
        reached: ReachedLimit,
    },
    Store(StoreError),
}

/// Days that `/usage` could be asked about; older ones are forgotten.
const KEPT_DAYS: i64 = 400;

impl SpendingBook {
    pub(crate) fn new(rows: SpendingRows, limits: SpendingLimits, clock: SharedClock) -> Self {
        Self {
            rows,
            limits,
            clock,
            today: Mutex::default(),
            is_shared: false,
        }
    }

    /// Whether other gateways spend beside this one: what is known here is then not all there is.
    pub(crate) fn counted_by_others(&mut self, is_shared: bool) {
        self.is_shared = is_shared;
    }

    pub(super) fn limits_of(&self, scope: &SpendingScope) -> &DayLimits {
        match scope {
            SpendingScope::Person(_) => &self.limits.person,
            SpendingScope::Conversation(_) => &self.limits.conversation,
            // Nobody bounds a model: people and conversations are.
            SpendingScope::Model(_) => &DayLimits::NONE,
            SpendingScope::All => &self.limits.all,
        }
    }

    /// Whether anything is bounded, so that it has to be counted before it is spent.
    pub(super) fn bounds_anything(&self) -> bool {
        self.limits != SpendingLimits::default()
    }

    pub(super) fn bounds_tools(&self) -> bool {
        let limits = [
            &self.limits.person,
            &self.limits.conversation,
            &self.limits.all,
        ];
        limits.iter().any(|limits| limits.tool_seconds.is_some())
    }

    /// Whether what each person spends is bounded, so that it matters whose turn something is part of.
    pub(crate) fn bounds_persons(&self) -> bool {
        !self.limits.person.is_none()
    }

    /// Whether anybody's money is bounded, so that prices have to be known.
    pub(super) fn bounds_money(&self) -> bool {
        let limits = [
            &self.limits.person,
            &self.limits.conversation,
            &self.limits.all,
        ];
        limits.iter().any(|limits| limits.dollars.is_some())
    }

    /// The day at which something is counted that nothing bounds.
    pub(super) async fn date(&self) -> String {
        self.today().await.date.clone()
    }

    /// Counts what is asked for all of `scopes`, if none of their bounds stands against it. Says for which
    /// day.
    pub(super) async fn reserve(
        &self,
        scopes: &[SpendingScope],
        asked: AskedFor,
    ) -> Result<String, NotReserved> {
        // The lock is held over the reads, so that of two requests at once only one finds the last
        // room. It is let go before the write, which all of them may wait for together.
        let mut today = self.today().await;
        for scope in scopes {
            let limits = self.limits_of(scope);
            if limits.is_none() {
                continue;
            }
            let mut day = self.sum(&mut today, scope).await?;
            if limits.reached(day, asked).is_some() {
                // It may have been lifted meanwhile by another process.
                day.lifts = self.rows.day(&today.date, scope).await?.lifts;
                today.sums.insert(scope.clone(), day);
            }
            if let Some(reached) = limits.reached(day, asked) {
                let scope = scope.clone();
                return Err(NotReserved::Reached { scope, reached });
            }
        }
        let date = today.date.clone();
        let AskedFor::Request(amounts) = asked else {
            return Ok(date);
        };
        // In memory first, so that whoever comes next sees it while it is being written down.
        add(&mut today, scopes, amounts);
        drop(today);
        if let Err(error) = self.rows.reserve(&date, scopes, amounts).await {
            // Nothing was let through, so nothing stays counted. If this is dropped while it
            // writes, the sums in memory stay too high until midnight, which errs on the side of
            // the budget.
            self.count(&date, scopes, negative(amounts)).await;
            return Err(error.into());
        }
        if self.is_shared {
            self.look_again(&date, scopes, amounts).await?;
        }
        Ok(date)
    }

    /// Of two gateways that found the last room at once, each sees the other's share here, and whoever is over the
    /// bound by it takes its own back: at worst both do.
    async fn look_again(
        &self,
        date: &str,
        scopes: &[SpendingScope],
        amounts: SpendingAmounts,
    ) -> Result<(), NotReserved> {
        for scope in scopes {
            let limits = self.limits_of(scope);
            if limits.is_none() {
                continue;
            }
            let mut day = self.rows.day(date, scope).await?;
            day.spent = difference(day.spent, amounts);
            if let Some(reached) = limits.reached(day, AskedFor::Request(amounts)) {
                self.settle(date, scopes, negative(amounts)).await;
                let scope = scope.clone();
                return Err(NotReserved::Reached { scope, reached });
            }
        }
        Ok(())
    }

    async fn count(&self, date: &str, scopes: &[SpendingScope], amounts: SpendingAmounts) {
        let mut today = self.today().await;
        if today.date == date {
            add(&mut today, scopes, amounts);
        }
    }

    /// Corrects what was counted for that day.
    pub(super) async fn settle(
        &self,
        date: &str,
        scopes: &[SpendingScope],
        change: SpendingAmounts,
    ) {
        self.count(date, scopes, change).await;
        if let Err(error) = self.rows.settle(date, scopes, change).await {
            tracing::error!(%error, "what was spent could not be written down");
        }
    }

    /// The same after a request, with all that its model took.
    pub(super) async fn settle_request(
        &self,
        date: &str,
        scopes: &[SpendingScope],
        change: SpendingAmounts,
        of_model: (SpendingScope, SpendingAmounts),
    ) {
        self.count(date, scopes, change).await;
        let settled = self.rows.settle_request(date, scopes, change, of_model);
        if let Err(error) = settled.await {
            tracing::error!(%error, "what was spent could not be written down");
        }
    }

    /// What is known of today.
    pub(super) async fn day(&self, scope: &SpendingScope) -> Result<SpendingDay, StoreError> {
        self.rows.day(&self.date().await, scope).await
    }

    /// Lifts today's bounds of one scope, if somebody spent under that name today or was refused to.
    pub(super) async fn lift(&self, scope: &SpendingScope) -> Result<LiftOutcome, StoreError> {
        let today = self.today().await;
        let known = today.sums.contains_key(scope)
            || self.rows.day(&today.date, scope).await? != SpendingDay::default();
        if !known {
            return Ok(LiftOutcome::Unknown);
        }
        Ok(match self.rows.lift(&today.date, scope).await? {
            true => LiftOutcome::Lifted,
            false => LiftOutcome::Already,
        })
    }

    /// Forgets days that nobody asks about.
    pub(crate) async fn forget_old(&self) -> Result<(), StoreError> {
        let now = self.clock.now().calendar();
        let oldest = now.to_zoned(TimeZone::system()).date();
        let oldest = oldest.saturating_sub(jiff::Span::new().days(KEPT_DAYS));
        self.rows
            .forget_before(&oldest.to_string(), KEPT_DAYS)
            .await
    }

    pub(super) async fn today(&self) -> tokio::sync::MutexGuard<'_, OpenDay> {
        let mut today = self.today.lock().await;
        // Read under the lock: who waited for it over midnight would bring yesterday back, without its sums.
        let now = self.clock.now().calendar();
        let date = now.to_zoned(TimeZone::system()).date().to_string();
        if today.date != date {
            *today = OpenDay {
                date,
                sums: HashMap::new(),
            };
        }
        today
    }

    async fn sum(
        &self,
        today: &mut OpenDay,
        scope: &SpendingScope,
    ) -> Result<SpendingDay, StoreError> {
        // What others spent is in the row alone.
        if let Some(day) = today.sums.get(scope).filter(|_| !self.is_shared) {
            return Ok(*day);
        }
        let day = self.rows.day(&today.date, scope).await?;
        today.sums.insert(scope.clone(), day);
        Ok(day)
    }
}

/// What `one` is more than `two`.
pub(super) fn difference(one: SpendingAmounts, two: SpendingAmounts) -> SpendingAmounts {
    sum(one, negative(two))
}

/// Only what was read before is kept: the rest is read when somebody asks.
fn add(today: &mut OpenDay, scopes: &[SpendingScope], amounts: SpendingAmounts) {
    for scope in scopes {
        if let Some(day) = today.sums.get_mut(scope) {
            day.spent = sum(day.spent, amounts);
        }
    }
}

fn negative(amounts: SpendingAmounts) -> SpendingAmounts {
    SpendingAmounts {
        requests: -amounts.requests,
        tokens: -amounts.tokens,
        nanodollars: -amounts.nanodollars,
        unpriced: -amounts.unpriced,
        tool_ms: -amounts.tool_ms,
    }
}

pub(super) fn sum(one: SpendingAmounts, two: SpendingAmounts) -> SpendingAmounts {
    SpendingAmounts {
        requests: one.requests.saturating_add(two.requests),
        tokens: one.tokens.saturating_add(two.tokens),
        nanodollars: one.nanodollars.saturating_add(two.nanodollars),
        unpriced: one.unpriced.saturating_add(two.unpriced),
        tool_ms: one.tool_ms.saturating_add(two.tool_ms),
    }
}

impl From<StoreError> for NotReserved {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
