//! What services beside the model take: searches, pictures, recordings.
//!
//! They are counted in money by the prices that the operator wrote, in the same budgets as the model's, before
//! the service is asked. Where money is bounded, what has no price is not asked for.

use hermetic_agent::NanoDollars;
use hermetic_store::{SpendingAmounts, SpendingScope};
use hermetic_tools::{ServiceCharge, ServiceUse};

use super::book::SpendingBook;
use super::commands::person;
use super::limits::AskedFor;
use super::meter::words;
use crate::Gateway;
use crate::message::AcceptedMessage;

/// What one of each costs, where somebody wrote it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServicePrices {
    pub search: Option<NanoDollars>,
    pub picture: Option<NanoDollars>,
    /// One voice message, written down.
    pub transcript: Option<NanoDollars>,
    /// A thousand characters, spoken.
    pub speech: Option<NanoDollars>,
}

/// Counts them for whoever asked, for the conversation and for all.
#[derive(Debug)]
pub(crate) struct ServiceMeter<'a> {
    pub(super) book: &'a SpendingBook,
    pub(super) scopes: [SpendingScope; 3],
    pub(super) prices: ServicePrices,
}

impl Gateway {
    pub(crate) fn service_meter(&self, message: &AcceptedMessage) -> ServiceMeter<'_> {
        ServiceMeter {
            book: &self.spending,
            scopes: [
                SpendingScope::Person(person(message)),
                SpendingScope::Conversation(message.conversation().to_string()),
                SpendingScope::All,
            ],
            prices: self.settings.prices,
        }
    }
}

impl ServicePrices {
    /// The price, and the setting that has it.
    fn of(&self, used: ServiceUse) -> (Option<NanoDollars>, &'static str) {
        match used {
            ServiceUse::Search => (self.search, "budgets.prices.search"),
            ServiceUse::Picture => (self.picture, "budgets.prices.picture"),
            ServiceUse::Speech { characters } => {
                let characters = u64::try_from(characters).unwrap_or(u64::MAX);
                let price = self.speech.map(|speech| {
                    let price = speech.get().saturating_mul(characters);
                    NanoDollars::new(price.div_ceil(1000))
                });
                (price, "budgets.prices.speech")
            }
        }
    }
}

impl ServiceMeter<'_> {
    pub(crate) async fn charge(&self, used: ServiceUse) -> Result<ServiceCharge, String> {
        self.charge_amount(self.prices.of(used)).await
    }

    pub(crate) async fn charge_transcript(&self) -> Result<ServiceCharge, String> {
        let price = (self.prices.transcript, "budgets.prices.transcript");
        self.charge_amount(price).await
    }

    async fn charge_amount(
        &self,
        (price, setting): (Option<NanoDollars>, &str),
    ) -> Result<ServiceCharge, String> {
        let Some(price) =
            price.or_else(|| (!self.book.bounds_money()).then_some(NanoDollars::new(0)))
        else {
            return Err(format!(
                "nobody was asked: there is a budget in dollars, and what this costs is not known; the operator can \
                 write it as {setting}"
            ));
        };
        let nanodollars = i64::try_from(price.get()).unwrap_or(i64::MAX);
        if nanodollars == 0 {
            return Ok(ServiceCharge::default());
        }
        let amounts = of_money(nanodollars);
        let date = match self.book.bounds_anything() {
            true => {
                let reserved = self.book.reserve(&self.scopes, AskedFor::Request(amounts));
                reserved.await.map_err(words)?
            }
            false => {
                let date = self.book.date().await;
                self.book.settle(&date, &self.scopes, amounts).await;
                date
            }
        };
        Ok(ServiceCharge { date, nanodollars })
    }

    pub(crate) async fn give_back(&self, charge: ServiceCharge) {
        if charge.nanodollars > 0 {
            let back = of_money(-charge.nanodollars);
            self.book.settle(&charge.date, &self.scopes, back).await;
        }
    }
}

fn of_money(nanodollars: i64) -> SpendingAmounts {
    SpendingAmounts {
        nanodollars,
        ..SpendingAmounts::default()
    }
}
