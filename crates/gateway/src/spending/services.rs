//! What services beside the model take: searches, pictures, recordings.
//!
//! They are counted in money by the prices that the operator wrote, in the same budgets as the model's, before
//! the service is asked. What has no price is counted as nothing.

use hermetic_agent::NanoDollars;
use hermetic_store::{SpendingAmounts, SpendingScope};
use hermetic_tools::{ServiceCharge, ServiceUse};

use super::book::SpendingBook;
use super::commands::person;
use super::limits::AskedFor;
use super::meter::words;
use crate::Gateway;
use crate::message::AcceptedMessage;

/// What one of each costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServicePrices {
    pub search: NanoDollars,
    pub picture: NanoDollars,
    /// One voice message, written down.
    pub transcript: NanoDollars,
    /// A thousand characters, spoken.
    pub speech: NanoDollars,
}

/// Counts them for whoever asked, for the conversation and for all.
#[derive(Debug)]
pub(crate) struct ServiceMeter<'a> {
    book: &'a SpendingBook,
    scopes: [SpendingScope; 3],
    prices: ServicePrices,
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
    fn of(&self, used: ServiceUse) -> NanoDollars {
        match used {
            ServiceUse::Search => self.search,
            ServiceUse::Picture => self.picture,
            ServiceUse::Speech { characters } => {
                let characters = u64::try_from(characters).unwrap_or(u64::MAX);
                let price = self.speech.get().saturating_mul(characters);
                NanoDollars::new(price.div_ceil(1000))
            }
        }
    }
}

impl ServiceMeter<'_> {
    pub(crate) async fn charge(&self, used: ServiceUse) -> Result<ServiceCharge, String> {
        self.charge_amount(self.prices.of(used)).await
    }

    pub(crate) async fn charge_transcript(&self) -> Result<ServiceCharge, String> {
        self.charge_amount(self.prices.transcript).await
    }

    async fn charge_amount(&self, price: NanoDollars) -> Result<ServiceCharge, String> {
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
