//! The order of the rules, one row for each.

use hermetic_access::{
    Bots, Grounds, PlatformSettings, Refused, Role, Settings, UnauthorizedDm, Users,
};
use hermetic_types::{ChatId, Incoming, Platform};

use crate::lab::{Lab, dm, group, user};

fn telegram(own: PlatformSettings) -> Settings {
    Settings {
        platforms: [(Platform::Telegram, own)].into(),
        unauthorized_dm: Some(UnauthorizedDm::Ignore),
        ..Settings::default()
    }
}

fn named(id: &str) -> Users {
    Users::named([user(id)])
}

fn bot(mut said: Incoming) -> Incoming {
    said.sender.is_bot = true;
    said
}

fn mentioning(mut said: Incoming) -> Incoming {
    said.mentions_us = true;
    said
}

async fn outcome(settings: Settings, said: Incoming) -> Option<(Grounds, Role)> {
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
            allowed_users: Users::everyone(),
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
    let global = || Settings {
        allowed_users: named("alice"),
        ..telegram(Default::default())
    };
    let global_all = || Settings {
        allow_all: true,
        ..telegram(Default::default())
    };
    let operators = || Settings {
        operators: [user("olga")].into(),
        ..telegram(Default::default())
    };

    let (guest, person) = (Role::Guest, Role::User);
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
            Some((Grounds::PlatformList, person)),
        ),
        (
            "listed, in a group",
            listed(),
            group("alice", "-1"),
            Some((Grounds::PlatformList, person)),
        ),
        ("another", listed(), dm("mallory"), None),
        ("a longer id", listed(), dm("alice2"), None),
        (
            "group list in a group",
            in_groups(),
            group("alice", "-1"),
            Some((Grounds::GroupList, person)),
        ),
        ("group list in private", in_groups(), dm("alice"), None),
        (
            "chat allowed",
            chat(),
            group("mallory", "-1"),
            Some((Grounds::AllowedChat, guest)),
        ),
        (
            "chat allowed, person named",
            chat(),
            group("alice", "-1"),
            Some((Grounds::AllowedChat, person)),
        ),
        (
            "chat allowed, operator",
            chat(),
            group("olga", "-1"),
            Some((Grounds::AllowedChat, Role::Operator)),
        ),
        ("another chat", chat(), group("mallory", "-2"), None),
        ("a private chat of that id", chat(), dm("-1"), None),
        (
            "star",
            star(),
            dm("mallory"),
            Some((Grounds::PlatformList, guest)),
        ),
        (
            "platform allow-all",
            all(),
            dm("mallory"),
            Some((Grounds::PlatformAllowsAll, guest)),
        ),
        (
            "gateway list",
            global(),
            dm("alice"),
            Some((Grounds::GatewayList, person)),
        ),
        (
            "gateway allow-all",
            global_all(),
            dm("mallory"),
            Some((Grounds::GatewayAllowsAll, guest)),
        ),
        (
            "operator",
            operators(),
            dm("olga"),
            Some((Grounds::Operator, Role::Operator)),
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
            bots(Bots::All),
            bot(dm("robot")),
            Some((Grounds::BotsAllowed, guest)),
        ),
        (
            "bots must mention",
            bots(Bots::Mentioning),
            bot(dm("robot")),
            None,
        ),
        (
            "a bot mentions",
            bots(Bots::Mentioning),
            mentioning(bot(dm("robot"))),
            Some((Grounds::BotsAllowed, guest)),
        ),
        (
            "bots allowed, a person",
            bots(Bots::All),
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
    let open = || Settings::default();
    assert!(matches!(
        Lab::new(open()).says(dm("mallory")).await,
        Err(Refused::OfferPairing(_))
    ));
    for (case, settings, said) in [
        ("in a group", open(), group("mallory", "-1")),
        ("a bot", open(), bot(dm("robot"))),
        (
            "with a list",
            Settings {
                allowed_users: named("alice"),
                ..open()
            },
            dm("mallory"),
        ),
        ("switched off", telegram(Default::default()), dm("mallory")),
    ] {
        assert_eq!(
            Lab::new(settings).says(said).await.unwrap_err(),
            Refused::SayNothing,
            "{case}"
        );
    }
}

#[tokio::test]
async fn a_list_as_people_write_it() {
    let mut rejected = Vec::new();
    let users = Users::parse(" 1, 2,,x\ny,", |word| rejected.push(word.to_owned()));
    assert!(users.names(&user("1")) && users.names(&user("2")) && !users.lets_everyone());
    assert_eq!(rejected, ["x\ny"]);
    assert!(Users::parse(" , ", |_| {}).is_empty());
    assert!(Users::parse("1,*", |_| {}).lets_everyone());
}
