//! Whose number it is, and what it lacks.

use hermetic_chat::{AccountCheck, AccountShortcoming, CheckError};
use serde::Deserialize;

use super::WhatsAppCloud;
use super::graph::GraphCallError;

/// What Meta says of the number.
#[derive(Debug, Deserialize)]
pub(super) struct RawNumber {
    pub(super) display_phone_number: Option<String>,
    pub(super) verified_name: Option<String>,
    quality_rating: Option<String>,
    webhook_configuration: Option<RawWebhooks>,
}

/// The addresses that Meta posts to, the nearest first.
#[derive(Debug, Deserialize)]
struct RawWebhooks {
    phone_number: Option<String>,
    whatsapp_business_account: Option<String>,
    application: Option<String>,
}

impl WhatsAppCloud {
    pub(super) async fn number(&self) -> Result<RawNumber, GraphCallError> {
        let fields = "display_phone_number,verified_name,quality_rating,webhook_configuration";
        let path = format!("{}?fields={fields}", self.phone_number_id);
        self.graph.get(&path).await
    }

    pub(super) async fn check_account(&self) -> Result<AccountCheck, CheckError> {
        let number = self.number().await?;
        let mut shortcomings = Vec::new();
        let mut lacks = |problem: &str, remedy: &str| {
            shortcomings.push(AccountShortcoming {
                problem: problem.to_owned(),
                remedy: remedy.to_owned(),
            });
        };
        if number.has_no_webhook() {
            lacks(
                "Meta knows no address to post messages to",
                "register the address of your proxy with /whatsapp/webhook behind it in the app's \
                 WhatsApp configuration, and subscribe to the field messages",
            );
        }
        if self.verify_token.is_none() {
            lacks(
                "no webhook can be registered without a verify token",
                "set WHATSAPP_CLOUD_VERIFY_TOKEN to any long random text and give Meta the same",
            );
        }
        if self.version.is_expired() {
            lacks(
                "this version of the Graph API has expired",
                "leave WHATSAPP_CLOUD_API_VERSION out, or write a newer one",
            );
        }
        if number.quality_rating.as_deref() == Some("RED") {
            lacks(
                "people block or report this number, and Meta is about to hold its messages back",
                "write only to people who wrote first",
            );
        }
        let names = [number.display_phone_number, number.verified_name];
        let names: Vec<_> = names.into_iter().flatten().collect();
        Ok(AccountCheck {
            name: (!names.is_empty()).then(|| names.join(", ")),
            shortcomings,
        })
    }
}

impl RawNumber {
    /// Said by Meta; where it says nothing, nothing is known.
    fn has_no_webhook(&self) -> bool {
        self.webhook_configuration.as_ref().is_some_and(|webhooks| {
            let all = [
                &webhooks.phone_number,
                &webhooks.whatsapp_business_account,
                &webhooks.application,
            ];
            all.into_iter().flatten().all(String::is_empty)
        })
    }
}

impl From<GraphCallError> for CheckError {
    fn from(error: GraphCallError) -> Self {
        match error {
            GraphCallError::Refused(refusal) if refusal.is_about_the_token() => {
                Self::Unauthorized {
                    description: refusal.words(),
                }
            }
            GraphCallError::Refused(refusal) => Self::Refused {
                description: refusal.words(),
            },
            other => Self::Unreachable(Box::new(other)),
        }
    }
}
