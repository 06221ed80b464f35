//! The door.

use std::fmt;

use hermetic_types::{
    AccountId, ButtonPress, ChatKind, ChatPlace, ConversationKey, IncomingMessage, JobId, Platform,
    Sender, Timestamp, UserId,
};
use serde::{Deserialize, Serialize};
use tracing::{info, warn};

use crate::key;
use crate::pairing::{PairingOffer, PairingService};
use crate::{
    AccessSettings, BotAdmission, PairedRole, PairingCode, PairingPlace, PlatformSettings,
    UnauthorizedDm, UserAllowlist,
};

/// Decides who may speak.
#[derive(Clone, Debug)]
pub struct Access {
    settings: AccessSettings,
    pairing: PairingService,
}

/// Something said by somebody who may say it.
///
/// [`Access`] is the only place that makes one; whatever acts on words from a chat takes this.
#[derive(Clone, Debug)]
pub struct Admitted<T = IncomingMessage> {
    conversation: ConversationKey,
    role: SenderRole,
    grounds: AdmissionGrounds,
    said: T,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SenderRole {
    /// May approve, and change how the gateway runs.
    Operator,
    /// Named in person or by a role, or paired.
    User,
    /// Let in with everybody else: by the chat, by `*`, by allow-all, or as a bot.
    Guest,
}

/// Which rule opened the door, for the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdmissionGrounds {
    Operator,
    AllowedChat,
    BotsAllowed,
    PlatformAllowsAll,
    Paired,
    PlatformList,
    GroupList,
    RoleList,
    GatewayList,
    GatewayAllowsAll,
}

/// What a stranger may learn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdmissionRefusal {
    /// Not even that somebody is here.
    SayNothing,
    /// This code, in the private chat it was asked for in.
    OfferPairing(PairingCode),
    /// They were told already. Nothing is said.
    RateLimited,
    /// Whether they are paired could not be looked up. They may be: whatever they said is to come again.
    CannotTell,
}

/// Whatever has a place and a sender: a message, a pressed button.
pub trait ChatUtterance: fmt::Debug {
    fn account(&self) -> &AccountId;
    fn place(&self) -> &ChatPlace;
    fn sender(&self) -> &Sender;
    fn mentions_us(&self) -> bool;

    /// People are known on a platform, whichever of its accounts they write to.
    fn platform(&self) -> Platform {
        self.account().platform()
    }
}

impl Access {
    pub fn new(settings: AccessSettings, pairing: PairingService) -> Self {
        Self { settings, pairing }
    }

    pub fn pairing(&self) -> &PairingService {
        &self.pairing
    }

    /// The key of the conversation that this person has in this place.
    pub fn conversation(
        &self,
        account: &AccountId,
        place: &ChatPlace,
        user: &UserId,
    ) -> ConversationKey {
        key::conversation(&self.settings, account, place, user)
    }

    /// Lets a message in, or says what its sender may learn.
    ///
    /// Where the store does not answer and no list names them, it cannot be told: nobody gets in, and
    /// nothing is settled.
    pub async fn admit(
        &self,
        incoming: IncomingMessage,
        now: Timestamp,
    ) -> Result<Admitted, AdmissionRefusal> {
        // Kept beside, because weighing takes the message away: whoever is turned away leaves
        // nothing behind but what pairing needs.
        let sender = incoming.sender.clone();
        let place = PairingPlace {
            account: incoming.account.clone(),
            place: incoming.place.clone(),
        };
        match self.weigh(incoming).await {
            Ok(Some(admitted)) => Ok(admitted),
            Ok(None) => Err(self.turn_away(&place, &sender, now).await),
            Err(refusal) => Err(refusal),
        }
    }

    /// The key of a job's own conversation.
    pub fn job_conversation(&self, account: &AccountId, job: &JobId) -> ConversationKey {
        key::job(&self.settings, account, job)
    }

    /// Lets a run of somebody's job in, by the rules of today, into a conversation of the job's own.
    ///
    /// A role counts where somebody speaks, because the platform says it then; nobody says it of a job, so
    /// who was let in by a role alone is not. A bot has no jobs, and nobody is offered pairing.
    pub async fn admit_job(
        &self,
        mut incoming: IncomingMessage,
        job: &JobId,
    ) -> Result<Admitted, AdmissionRefusal> {
        if incoming.sender.is_bot {
            return Err(AdmissionRefusal::SayNothing);
        }
        // Cleared although whoever stores a job leaves them out: a row could have been written by
        // anything.
        incoming.sender.roles.clear();
        let conversation = key::job(&self.settings, &incoming.account, job);
        let admitted = self.weigh(incoming).await?;
        let admitted = admitted.ok_or(AdmissionRefusal::SayNothing)?;
        Ok(Admitted {
            conversation,
            ..admitted
        })
    }

    /// Lets a pressed button in. A stranger who presses one is never offered pairing.
    pub async fn admit_press(
        &self,
        press: ButtonPress,
    ) -> Result<Admitted<ButtonPress>, AdmissionRefusal> {
        self.weigh(press).await?.ok_or(AdmissionRefusal::SayNothing)
    }

    async fn weigh<T: ChatUtterance>(
        &self,
        said: T,
    ) -> Result<Option<Admitted<T>>, AdmissionRefusal> {
        let paired = match said.sender().is_bot {
            true => Ok(None),
            // Looked up first, and only held against somebody whom no rule lets in: a store that
            // fails shuts out nobody who is named in the configuration.
            false => self.paired_role(&said).await,
        };
        let known = paired.clone().unwrap_or_default();
        let Some((grounds, role)) = decide(&self.settings, &said, known) else {
            // Where the look-up failed this is "cannot tell" and not "no": whoever may be paired is
            // heard again when the store works.
            return paired.map(|_| None);
        };
        Ok(Some(Admitted {
            conversation: key::conversation(
                &self.settings,
                said.account(),
                said.place(),
                &said.sender().id,
            ),
            role,
            grounds,
            said,
        }))
    }

    async fn paired_role(
        &self,
        said: &impl ChatUtterance,
    ) -> Result<Option<PairedRole>, AdmissionRefusal> {
        self.pairing
            .role_of(said.platform(), &said.sender().id)
            .await
            .map_err(|error| {
                warn!(%error, platform = %said.platform(), "pairing could not be looked up");
                AdmissionRefusal::CannotTell
            })
    }

    async fn turn_away(
        &self,
        place: &PairingPlace,
        sender: &Sender,
        now: Timestamp,
    ) -> AdmissionRefusal {
        let platform = place.account.platform();
        let pairs = self.settings.unauthorized_dm(platform) == UnauthorizedDm::Pair;
        // Never in a group: the code would be read by everybody there.
        if place.place.kind != ChatKind::Dm || sender.is_bot || !pairs {
            info!(%platform, user = %sender.id, rule = "not allowed", "refused");
            return AdmissionRefusal::SayNothing;
        }
        match self.pairing.request(sender, place, now).await {
            Ok(PairingOffer::Code(code)) => {
                info!(%platform, user = %sender.id, rule = "pairing offered", "refused");
                AdmissionRefusal::OfferPairing(code)
            }
            Ok(PairingOffer::TooSoon) => AdmissionRefusal::RateLimited,
            Err(error) => {
                warn!(%error, %platform, user = %sender.id, "pairing could not be offered");
                AdmissionRefusal::SayNothing
            }
        }
    }
}

/// The order is that of Hermes: chat, bots, platform allow-all, pairing, lists, gateway allow-all.
/// Every rule opens and none closes, but for bots, who stay out unless asked in.
fn decide(
    settings: &AccessSettings,
    said: &impl ChatUtterance,
    paired: Option<PairedRole>,
) -> Option<(AdmissionGrounds, SenderRole)> {
    let nothing = PlatformSettings::default();
    let own = settings.platforms.get(&said.platform()).unwrap_or(&nothing);
    let (place, sender) = (said.place(), said.sender());
    let in_group = place.kind != ChatKind::Dm;
    let chat_allowed = in_group && own.group_allowed_chats.contains(&place.chat);

    // Before every list: two bots that answer each other never end, so a list that was meant for
    // people does not let one in.
    if sender.is_bot {
        let grounds = if chat_allowed {
            AdmissionGrounds::AllowedChat
        } else {
            AdmissionGrounds::BotsAllowed
        };
        return is_asked_in(own.bots, said).then_some((grounds, SenderRole::Guest));
    }

    let id = &sender.id;
    let passing = own.passing_roles.as_ref();
    let is_made_operator = |role| {
        own.operator_roles.contains(role) || passing.is_some_and(|known| known.makes_operator(role))
    };
    let is_operator = settings.operators.contains(id)
        || own.operators.contains(id)
        || sender.roles.iter().any(is_made_operator)
        || paired == Some(PairedRole::Operator);
    let paired = paired.is_some();
    let lists = [
        (Some(&own.allowed_users), AdmissionGrounds::PlatformList),
        (
            in_group.then_some(&own.group_allowed_users),
            AdmissionGrounds::GroupList,
        ),
        (Some(&settings.allowed_users), AdmissionGrounds::GatewayList),
    ];
    let on_list = |fits: fn(&UserAllowlist, &UserId) -> bool| {
        lists
            .into_iter()
            .find(|(list, _)| list.is_some_and(|list| fits(list, id)))
            .map(|(_, grounds)| grounds)
    };
    // By name and by `*` apart: both open, but somebody who is named is a user, and whoever comes
    // in with everybody is a guest.
    let named = on_list(UserAllowlist::names);
    // Only what the platform says of them where they speak: nobody has a role in private.
    let has_role = sender
        .roles
        .iter()
        .any(|role| own.allowed_roles.contains(role));

    let grounds = chat_allowed
        .then_some(AdmissionGrounds::AllowedChat)
        .or(own.allow_all.then_some(AdmissionGrounds::PlatformAllowsAll))
        .or(paired.then_some(AdmissionGrounds::Paired))
        .or(named)
        .or(has_role.then_some(AdmissionGrounds::RoleList))
        .or(on_list(|list, _| list.lets_everyone()))
        .or(is_operator.then_some(AdmissionGrounds::Operator))
        .or(settings
            .allow_all
            .then_some(AdmissionGrounds::GatewayAllowsAll))?;
    // Apart from the grounds: which rule opened says nothing about what somebody may do inside.
    let role = if is_operator {
        SenderRole::Operator
    } else if paired || named.is_some() || has_role {
        SenderRole::User
    } else {
        SenderRole::Guest
    };
    Some((grounds, role))
}

fn is_asked_in(bots: BotAdmission, said: &impl ChatUtterance) -> bool {
    match bots {
        BotAdmission::All => true,
        BotAdmission::Mentioning => said.mentions_us(),
        BotAdmission::Refuse => false,
    }
}

impl<T> Admitted<T> {
    pub fn conversation(&self) -> &ConversationKey {
        &self.conversation
    }

    pub fn role(&self) -> SenderRole {
        self.role
    }

    pub fn grounds(&self) -> AdmissionGrounds {
        self.grounds
    }

    pub fn said(&self) -> &T {
        &self.said
    }

    pub fn into_said(self) -> T {
        self.said
    }
}

impl<T: ChatUtterance> Admitted<T> {
    pub fn sender(&self) -> &Sender {
        self.said.sender()
    }
}

impl ChatUtterance for IncomingMessage {
    fn account(&self) -> &AccountId {
        &self.account
    }

    fn place(&self) -> &ChatPlace {
        &self.place
    }

    fn sender(&self) -> &Sender {
        &self.sender
    }

    fn mentions_us(&self) -> bool {
        self.mentions_us
    }
}

impl ChatUtterance for ButtonPress {
    fn account(&self) -> &AccountId {
        &self.account
    }

    fn place(&self) -> &ChatPlace {
        &self.place
    }

    fn sender(&self) -> &Sender {
        &self.sender
    }

    fn mentions_us(&self) -> bool {
        true
    }
}
