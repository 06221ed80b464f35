//! The order of the rules, one row for each.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use hermetic_access::{
    Access, AccessSettings, AdmissionGrounds, AdmissionRefusal, BotAdmission, LedgerVersion,
    PairingLedger, PairingService, PairingStore, PairingStoreError, PassingRoles, PlatformSettings,
    SaveOutcome, SenderRole, UnauthorizedDm, UserAllowlist,
};
use hermetic_types::{ChatId, IncomingMessage, Platform, RoleId, Timestamp};

use crate::lab::{Lab, dm, group, user};

fn telegram(own: PlatformSettings) -> AccessSettings {
    AccessSettings {
        platforms: [(Platform::Telegram, own)].into(),
        unauthorized_dm: Some(UnauthorizedDm::Ignore),
        ..AccessSettings::default()
    }
}

fn named(id: &str) -> UserAllowlist {
    UserAllowlist::named([user(id)])
}

fn bot(mut said: IncomingMessage) -> IncomingMessage {
    said.sender.is_bot = true;
    said
}

fn mentioning(mut said: IncomingMessage) -> IncomingMessage {
    said.mentions_us = true;
    said
}

async fn outcome(
    settings: AccessSettings,
    said: IncomingMessage,
) -> Option<(AdmissionGrounds, SenderRole)> {
    Lab::new(settings)
        .says(said)
        .await
        .ok()
        .map(|admitted| (admitted.grounds(), admitted.role()))
}

#[tokio::test]
async fn each_rule_opens_for_whom_it_names() {
    let listed = || {
        telegram(PlatformSettings {
            allowed_users: named("alice"),
            ..Default::default()
        })
    };
    let in_groups = || {
        telegram(PlatformSettings {
            group_allowed_users: named("alice"),
            ..Default::default()
        })
    };
    let chat = || {
        telegram(PlatformSettings {
            group_allowed_chats: [ChatId::new("-1").unwrap()].into(),
            allowed_users: named("alice"),
            operators: [user("olga")].into(),
            ..Default::default()
        })
    };
    let star = || {
        telegram(PlatformSettings {
            allowed_users: UserAllowlist::everyone(),
            ..Default::default()
        })
    };
    let all = || {
        telegram(PlatformSettings {
            allow_all: true,
            ..Default::default()
        })
    };
    let bots = |bots| {
        telegram(PlatformSettings {
            bots,
            ..Default::default()
        })
    };
    let global = || AccessSettings {
        allowed_users: named("alice"),
        ..telegram(Default::default())
    };
    let global_all = || AccessSettings {
        allow_all: true,
        ..telegram(Default::default())
    };
    let operators = || AccessSettings {
        operators: [user("olga")].into(),
        ..telegram(Default::default())
    };

    let (guest, person) = (SenderRole::Guest, SenderRole::User);
    let table = [
        (
            "nobody is listed",
            telegram(Default::default()),
            dm("alice"),
            None,
        ),
        (
            "listed",
            listed(),
            dm("alice"),
            Some((AdmissionGrounds::PlatformList, person)),
        ),
        (
            "listed, in a group",
            listed(),
            group("alice", "-1"),
            Some((AdmissionGrounds::PlatformList, person)),
        ),
        ("another", listed(), dm("mallory"), None),
        ("a longer id", listed(), dm("alice2"), None),
        (
            "group list in a group",
            in_groups(),
            group("alice", "-1"),
            Some((AdmissionGrounds::GroupList, person)),
        ),
        ("group list in private", in_groups(), dm("alice"), None),
        (
            "chat allowed",
            chat(),
            group("mallory", "-1"),
            Some((AdmissionGrounds::AllowedChat, guest)),
        ),
        (
            "chat allowed, person named",
            chat(),
            group("alice", "-1"),
            Some((AdmissionGrounds::AllowedChat, person)),
        ),
        (
            "chat allowed, operator",
            chat(),
            group("olga", "-1"),
            Some((AdmissionGrounds::AllowedChat, SenderRole::Operator)),
        ),
        ("another chat", chat(), group("mallory", "-2"), None),
        ("a private chat of that id", chat(), dm("-1"), None),
        (
            "star",
            star(),
            dm("mallory"),
            Some((AdmissionGrounds::PlatformList, guest)),
        ),
        (
            "platform allow-all",
            all(),
            dm("mallory"),
            Some((AdmissionGrounds::PlatformAllowsAll, guest)),
        ),
        (
            "gateway list",
            global(),
            dm("alice"),
            Some((AdmissionGrounds::GatewayList, person)),
        ),
        (
            "gateway allow-all",
            global_all(),
            dm("mallory"),
            Some((AdmissionGrounds::GatewayAllowsAll, guest)),
        ),
        (
            "operator",
            operators(),
            dm("olga"),
            Some((AdmissionGrounds::Operator, SenderRole::Operator)),
        ),
        ("a bot", all(), bot(dm("robot")), None),
        ("a bot named", listed(), bot(dm("alice")), None),
        (
            "a bot posing as operator",
            operators(),
            bot(dm("olga")),
            None,
        ),
        (
            "a bot in an allowed chat",
            chat(),
            bot(group("robot", "-1")),
            None,
        ),
        (
            "bots allowed",
            bots(BotAdmission::All),
            bot(dm("robot")),
            Some((AdmissionGrounds::BotsAllowed, guest)),
        ),
        (
            "bots must mention",
            bots(BotAdmission::Mentioning),
            bot(dm("robot")),
            None,
        ),
        (
            "a bot mentions",
            bots(BotAdmission::Mentioning),
            mentioning(bot(dm("robot"))),
            Some((AdmissionGrounds::BotsAllowed, guest)),
        ),
        (
            "bots allowed, a person",
            bots(BotAdmission::All),
            dm("mallory"),
            None,
        ),
    ];
    for (case, settings, said, expected) in table {
        assert_eq!(outcome(settings, said).await, expected, "{case}");
    }
}

#[tokio::test]
async fn a_platforms_list_opens_no_other_platform() {
    let mut said = dm("alice");
    said.account = Platform::Discord.into();
    let settings = telegram(PlatformSettings {
        allowed_users: named("alice"),
        ..Default::default()
    });
    assert_eq!(outcome(settings, said).await, None);
}

#[tokio::test]
async fn strangers_are_offered_a_code_only_in_private_and_only_while_there_is_no_list() {
    let open = || AccessSettings::default();
    assert!(matches!(
        Lab::new(open()).says(dm("mallory")).await,
        Err(AdmissionRefusal::OfferPairing(_))
    ));
    for (case, settings, said) in [
        ("in a group", open(), group("mallory", "-1")),
        ("a bot", open(), bot(dm("robot"))),
        (
            "with a list",
            AccessSettings {
                allowed_users: named("alice"),
                ..open()
            },
            dm("mallory"),
        ),
        ("switched off", telegram(Default::default()), dm("mallory")),
    ] {
        assert_eq!(
            Lab::new(settings).says(said).await.unwrap_err(),
            AdmissionRefusal::SayNothing,
            "{case}"
        );
    }
}

#[tokio::test]
async fn a_list_as_people_write_it() {
    let mut rejected = Vec::new();
    let users = UserAllowlist::parse(" 1, 2,,x\ny,", |word| rejected.push(word.to_owned()));
    assert!(users.names(&user("1")) && users.names(&user("2")) && !users.lets_everyone());
    assert_eq!(rejected, ["x\ny"]);
    assert!(UserAllowlist::parse(" , ", |_| {}).is_empty());
    assert!(UserAllowlist::parse("1,*", |_| {}).lets_everyone());
}

#[tokio::test]
async fn a_role_opens_the_door_where_it_is_had() {
    let own = PlatformSettings {
        allowed_roles: [RoleId::from(900)].into(),
        ..PlatformSettings::default()
    };
    let lab = Lab::new(AccessSettings {
        platforms: [(Platform::Telegram, own)].into(),
        ..AccessSettings::default()
    });
    let with_roles = |incoming: IncomingMessage, roles: &[i64]| {
        let mut incoming = incoming;
        incoming.sender.roles = roles.iter().copied().map(RoleId::from).collect();
        incoming
    };
    let admitted = lab
        .says(with_roles(group("7", "-1"), &[800, 900]))
        .await
        .unwrap();
    assert_eq!(
        (admitted.grounds(), admitted.role()),
        (AdmissionGrounds::RoleList, SenderRole::User)
    );
    assert!(
        lab.says(with_roles(group("7", "-1"), &[800]))
            .await
            .is_err()
    );
    // A list of roles is a list: strangers are not offered pairing any more.
    assert_eq!(
        lab.says(dm("7")).await.unwrap_err(),
        AdmissionRefusal::SayNothing
    );
}

/// A role that makes an operator until it does not.
#[derive(Debug, Default)]
struct EndedRole(std::sync::atomic::AtomicBool);

impl PassingRoles for EndedRole {
    fn makes_operator(&self, role: &RoleId) -> bool {
        *role == RoleId::from(900) && !self.0.load(std::sync::atomic::Ordering::SeqCst)
    }
}

#[tokio::test]
async fn a_role_that_has_ended_opens_nothing_to_what_was_left_behind() {
    let role = Arc::new(EndedRole::default());
    let own = PlatformSettings {
        passing_roles: Some(Arc::clone(&role) as Arc<dyn PassingRoles>),
        unauthorized_dm: Some(UnauthorizedDm::Ignore),
        ..PlatformSettings::default()
    };
    let lab = Lab::new(AccessSettings {
        platforms: [(Platform::Telegram, own)].into(),
        ..AccessSettings::default()
    });
    let mut said = dm("7");
    said.sender.roles = vec![RoleId::from(900)];
    let admitted = lab.says(said.clone()).await.unwrap();
    assert_eq!(admitted.role(), SenderRole::Operator);
    role.0.store(true, std::sync::atomic::Ordering::SeqCst);
    let refused = lab.says(said).await.unwrap_err();
    assert_eq!(refused, AdmissionRefusal::SayNothing);
}

#[tokio::test]
async fn a_role_that_the_platform_is_trusted_with_makes_an_operator_there_and_nowhere_else() {
    let own = PlatformSettings {
        operator_roles: [RoleId::from(900)].into(),
        unauthorized_dm: Some(UnauthorizedDm::Ignore),
        ..PlatformSettings::default()
    };
    let lab = Lab::new(AccessSettings {
        platforms: [(Platform::Telegram, own)].into(),
        ..AccessSettings::default()
    });
    let with_role = |incoming: IncomingMessage, role: i64| {
        let mut incoming = incoming;
        incoming.sender.roles = vec![RoleId::from(role)];
        incoming
    };
    let admitted = lab.says(with_role(dm("7"), 900)).await.unwrap();
    assert_eq!(
        (admitted.grounds(), admitted.role()),
        (AdmissionGrounds::Operator, SenderRole::Operator)
    );
    for stranger in [dm("7"), with_role(dm("7"), 800)] {
        let refused = lab.says(stranger).await.unwrap_err();
        assert_eq!(refused, AdmissionRefusal::SayNothing);
    }
    let mut elsewhere = with_role(dm("7"), 900);
    elsewhere.account = Platform::Discord.into();
    assert!(lab.says(elsewhere).await.is_err());
}

#[derive(Debug)]
struct BrokenPairings;

impl PairingStore for BrokenPairings {
    fn load(
        &self,
        _: Platform,
    ) -> BoxFuture<'_, Result<(PairingLedger, LedgerVersion), PairingStoreError>> {
        async { Err(PairingStoreError("no descriptor left".into())) }.boxed()
    }

    fn save<'a>(
        &'a self,
        _: Platform,
        _: &'a PairingLedger,
        _: LedgerVersion,
    ) -> BoxFuture<'a, Result<SaveOutcome, PairingStoreError>> {
        async { Err(PairingStoreError("no descriptor left".into())) }.boxed()
    }
}

#[tokio::test]
async fn a_store_that_does_not_answer_settles_nothing() {
    let allowed = UserAllowlist::parse("8", |_| {});
    let own = PlatformSettings {
        allowed_users: allowed,
        ..PlatformSettings::default()
    };
    let settings = AccessSettings {
        platforms: [(Platform::Telegram, own)].into(),
        ..AccessSettings::default()
    };
    let pairing = PairingService::new(Arc::new(BrokenPairings));
    let access = Access::new(settings, pairing);
    let now = Timestamp::from_seconds(1_700_000_000);
    // Somebody paired may be among them, so they are neither let in nor sent away.
    let unknown = access.admit(dm("7"), now).await.unwrap_err();
    assert_eq!(unknown, AdmissionRefusal::CannotTell);
    // Who is on a list needs no pairing.
    assert!(access.admit(dm("8"), now).await.is_ok());
}
