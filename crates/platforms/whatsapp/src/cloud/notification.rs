//! One POST of Meta's: many messages and statuses, in no order, for one or several numbers.
//!
//! Each is read by itself, so that one that cannot be read costs nothing but itself.

use serde::Deserialize;
use serde_json::Value;
use tracing::{debug, warn};

use super::message::CloudMessage;
use super::status::RawStatus;
use crate::person::{BusinessScopedId, PhoneNumber};

/// What was posted for one number.
#[derive(Debug, Default)]
pub(crate) struct CloudNotification {
    pub(crate) messages: Vec<PostedCloudMessage>,
    pub(crate) statuses: Vec<RawStatus>,
}

/// A message, with what was posted beside it.
#[derive(Debug)]
pub(crate) struct PostedCloudMessage {
    pub(crate) message: CloudMessage,
    /// The profile of whoever sent it.
    pub(crate) contact: Option<RawContact>,
    /// The number it was sent to, digits only.
    pub(crate) own_number: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct RawContact {
    pub(crate) wa_id: Option<String>,
    pub(crate) user_id: Option<String>,
    #[serde(default)]
    pub(crate) profile: RawProfile,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct RawProfile {
    pub(crate) name: Option<String>,
    pub(crate) username: Option<String>,
}

impl CloudNotification {
    /// What a body says about the number with this id.
    pub(crate) fn read(body: &Value, phone_number_id: &str) -> Self {
        let mut read = Self::default();
        for change in list(body, "entry").flat_map(|entry| list(entry, "changes")) {
            let value = &change["value"];
            let whose = value["metadata"]["phone_number_id"].as_str();
            if whose != Some(phone_number_id) {
                debug!(whose, "a notification for another number; skipped");
                continue;
            }
            read.add(value);
        }
        // Meta posts them in no order; within a second they stay as they came.
        read.messages.sort_by_key(|posted| posted.message.seconds());
        read
    }

    fn add(&mut self, value: &Value) {
        let shown = value["metadata"]["display_phone_number"].as_str();
        let shown = shown.unwrap_or_default().chars();
        let own_number: String = shown.filter(char::is_ascii_digit).collect();
        let contacts: Vec<RawContact> = readable(value, "contacts").collect();
        for message in readable::<CloudMessage>(value, "messages") {
            let contact = contacts.iter().find(|contact| message.is_from(contact));
            self.messages.push(PostedCloudMessage {
                contact: contact.cloned(),
                own_number: own_number.clone(),
                message,
            });
        }
        self.statuses.extend(readable(value, "statuses"));
        for error in list(value, "errors") {
            warn!(code = %error["code"], title = %error["title"], "meta reports an error");
        }
    }
}

impl PostedCloudMessage {
    /// The id and the number that Meta shows of who sent it. Neither is looked for anywhere but where
    /// Meta itself writes it: a profile's name is whatever the person typed.
    pub(crate) fn shown(&self) -> (Option<BusinessScopedId>, Option<PhoneNumber>) {
        let contact = self.contact.as_ref();
        let id = self.message.from_user_id.as_deref();
        let id = id.or_else(|| contact?.user_id.as_deref());
        let number = self.message.from.as_deref();
        let number = number.or_else(|| contact?.wa_id.as_deref());
        (
            id.and_then(BusinessScopedId::read),
            number.and_then(PhoneNumber::read),
        )
    }

    /// What they call themselves.
    pub(crate) fn display(&self) -> String {
        let profile = self.contact.as_ref().map(|contact| &contact.profile);
        let name = profile.and_then(|profile| {
            let name = profile.name.as_ref().filter(|name| !name.is_empty());
            name.or(profile.username.as_ref())
        });
        name.cloned().unwrap_or_default()
    }
}

fn list<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value[name].as_array().into_iter().flatten()
}

/// The ones that can be read; of the others the log is told.
fn readable<'a, T: Deserialize<'a>>(
    value: &'a Value,
    name: &'static str,
) -> impl Iterator<Item = T> {
    list(value, name).filter_map(move |one| {
        T::deserialize(one)
            .inspect_err(
                |error| warn!(what = name, %error, "meta posted something malformed; skipped"),
            )
            .ok()
    })
}
