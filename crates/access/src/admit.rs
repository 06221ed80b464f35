//! The door.

use std::fmt;

use hermetic_types::{
    AccountId, ChatKind, ConversationKey, Incoming, Place, Platform, Press, Sender, UserId,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tracing::{info, warn};

use crate::key;
use crate::pairing::{Offer, Pairing};
use crate::{Bots, PairingCode, PlatformSettings, Settings, UnauthorizedDm, Users};

/// Decides who may speak.
#[derive(Clone, Debug)]
pub struct Access {
    settings: Settings,
    pairing: Pairing,
}

/// Something said by somebody who may say it.
///
/// [`Access`] is the only place that makes one; whatever acts on words from a chat takes this.
#[derive(Clone, Debug)]
pub struct Admitted<T = Incoming> {
    conversation: ConversationKey,
    role: Role,
    grounds: Grounds,
    said: T,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// May approve, and change how the gateway runs.
    Operator,
    /// Named in person, or paired.
    User,
    /// Let in with everybody else: by the chat, by `*`, by allow-all, or as a bot.
    Guest,
}

/// Which rule opened the door, for the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grounds {
    Operator,
    AllowedChat,
    BotsAllowed,
    PlatformAllowsAll,
    Paired,
    PlatformList,
    GroupList,
    GatewayList,
    GatewayAllowsAll,
}

/// What a stranger may learn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Not even that somebody is here.
    SayNothing,
    /// This code, in the private chat it was asked for in.
    OfferPairing(PairingCode),
    /// They were told already. Nothing is said.
    RateLimited,
}

/// Whatever has a place and a sender: a message, a pressed button.
pub trait Said: fmt::Debug {
    fn account(&self) -> &AccountId;
    fn place(&self) -> &Place;
    fn sender(&self) -> &Sender;
    fn mentions_us(&self) -> bool;

    /// People are known on a platform, whichever of its accounts they write to.
    fn platform(&self) -> Platform {
        self.account().platform()
    }
}

impl Access {
    pub fn new(settings: Settings, pairing: Pairing) -> Self {
        Self { settings, pairing }
    }

    pub fn pairing(&self) -> &Pairing {
        &self.pairing
    }

    /// Lets a message in, or says what its sender may learn.
    ///
    /// A store that does not answer is a refusal: somebody paired has to write again, nobody else
    /// gets in.
    pub async fn admit(&self, incoming: Incoming, now: Timestamp) -> Result<Admitted, Refused> {
        let sender = incoming.sender.clone();
        let (platform, kind) = (incoming.platform(), incoming.place.kind);
        match self.weigh(incoming).await {
            Some(admitted) => Ok(admitted),
            None => Err(self.turn_away(platform, kind, &sender, now).await),
        }
    }

    /// Lets a pressed button in. A stranger who presses one is never offered pairing.
    pub async fn admit_press(&self, press: Press) -> Result<Admitted<Press>, Refused> {
        self.weigh(press).await.ok_or(Refused::SayNothing)
    }

    async fn weigh<T: Said>(&self, said: T) -> Option<Admitted<T>> {
        let paired = !said.sender().is_bot && self.is_paired(&said).await;
        let (grounds, role) = decide(&self.settings, &said, paired)?;
        Some(Admitted {
            conversation: key::conversation(
                &self.settings,
                said.account(),
                said.place(),
                &said.sender().id,
            ),
            role,
            grounds,
            said,
        })
    }

    async fn is_paired(&self, said: &impl Said) -> bool {
        self.pairing
            .is_approved(said.platform(), &said.sender().id)
            .await
            .unwrap_or_else(|error| {
                warn!(%error, platform = %said.platform(), "pairing could not be looked up");
                false
            })
    }

    async fn turn_away(
        &self,
        platform: Platform,
        kind: ChatKind,
        sender: &Sender,
        now: Timestamp,
    ) -> Refused {
        let pairs = self.settings.unauthorized_dm(platform) == UnauthorizedDm::Pair;
        if kind != ChatKind::Dm || sender.is_bot || !pairs {
            info!(%platform, user = %sender.id, rule = "not allowed", "refused");
            return Refused::SayNothing;
        }
        match self.pairing.request(platform, sender, now).await {
            Ok(Offer::Code(code)) => {
                info!(%platform, user = %sender.id, rule = "pairing offered", "refused");
                Refused::OfferPairing(code)
            }
            Ok(Offer::TooSoon) => Refused::RateLimited,
            Err(error) => {
                warn!(%error, %platform, user = %sender.id, "pairing could not be offered");
                Refused::SayNothing
            }
        }
    }
}

/// The order is that of Hermes: chat, bots, platform allow-all, pairing, lists, gateway allow-all.
/// Every rule opens and none closes, but for bots, who stay out unless asked in.
fn decide(settings: &Settings, said: &impl Said, paired: bool) -> Option<(Grounds, Role)> {
    let nothing = PlatformSettings::default();
    let own = settings.platforms.get(&said.platform()).unwrap_or(&nothing);
    let (place, sender) = (said.place(), said.sender());
    let in_group = place.kind != ChatKind::Dm;
    let chat_allowed = in_group && own.group_allowed_chats.contains(&place.chat);

    if sender.is_bot {
        let asked_in = match own.bots {
            Bots::All => true,
            Bots::Mentioning => said.mentions_us(),
            Bots::Refuse => false,
        };
        let grounds = if chat_allowed {
            Grounds::AllowedChat
        } else {
            Grounds::BotsAllowed
        };
        return asked_in.then_some((grounds, Role::Guest));
    }

    let id = &sender.id;
    let is_operator = settings.operators.contains(id) || own.operators.contains(id);
    let lists = [
        (Some(&own.allowed_users), Grounds::PlatformList),
        (
            in_group.then_some(&own.group_allowed_users),
            Grounds::GroupList,
        ),
        (Some(&settings.allowed_users), Grounds::GatewayList),
    ];
    let on_list = |fits: fn(&Users, &UserId) -> bool| {
        lists
            .into_iter()
            .find(|(list, _)| list.is_some_and(|list| fits(list, id)))
            .map(|(_, grounds)| grounds)
    };
    let named = on_list(Users::names);

    let grounds = chat_allowed
        .then_some(Grounds::AllowedChat)
        .or(own.allow_all.then_some(Grounds::PlatformAllowsAll))
        .or(paired.then_some(Grounds::Paired))
        .or(named)
        .or(on_list(|list, _| list.lets_everyone()))
        .or(is_operator.then_some(Grounds::Operator))
        .or(settings.allow_all.then_some(Grounds::GatewayAllowsAll))?;
    let role = if is_operator {
        Role::Operator
    } else if paired || named.is_some() {
        Role::User
    } else {
        Role::Guest
    };
    Some((grounds, role))
}

impl<T> Admitted<T> {
    pub fn conversation(&self) -> &ConversationKey {
        &self.conversation
    }

    pub fn role(&self) -> Role {
        self.role
    }

    pub fn grounds(&self) -> Grounds {
        self.grounds
    }

    pub fn said(&self) -> &T {
        &self.said
    }

    pub fn into_said(self) -> T {
        self.said
    }
}

impl<T: Said> Admitted<T> {
    pub fn sender(&self) -> &Sender {
        self.said.sender()
    }
}

impl Said for Incoming {
    fn account(&self) -> &AccountId {
        &self.account
    }

    fn place(&self) -> &Place {
        &self.place
    }

    fn sender(&self) -> &Sender {
        &self.sender
    }

    fn mentions_us(&self) -> bool {
        self.mentions_us
    }
}

impl Said for Press {
    fn account(&self) -> &AccountId {
        &self.account
    }

    fn place(&self) -> &Place {
        &self.place
    }

    fn sender(&self) -> &Sender {
        &self.sender
    }

    fn mentions_us(&self) -> bool {
        true
    }
}
