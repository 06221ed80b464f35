//! Letting people in, at the command line.

use hermetic_access::{PairingOffer, PairingPlace};
use hermetic_config::{ConfigInputs, HomeFolder};
use hermetic_types::{
    ChatId, ChatKind, ChatPlace, Clock as _, Platform, Sender, SystemClock, UserId,
};

use crate::hermetic::Hermetic;

/// The code that a stranger gets who writes to a gateway of this home.
fn asks(home: &Hermetic, platform: Platform, user: &str) -> String {
    let inputs = ConfigInputs {
        home: HomeFolder::at(home.path("")),
        managed: home.path("no-such-file"),
        variables: Default::default(),
        unreadable: Vec::new(),
    };
    let config = hermetic_config::load(&inputs).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        hermetic_app::installation(config.home()).unwrap();
        let pairing = hermetic_app::pairing(&hermetic_app::store(&config).await.unwrap());
        let sender = Sender {
            id: UserId::new(user).unwrap(),
            display: user.to_owned(),
            is_bot: false,
            roles: Vec::new(),
        };
        let place = PairingPlace {
            account: platform.into(),
            place: ChatPlace {
                chat: ChatId::new(user).unwrap(),
                kind: ChatKind::Dm,
                thread: None,
            },
        };
        match pairing.request(&sender, &place, SystemClock.now()).await {
            Ok(PairingOffer::Code(code)) => code.as_str().to_owned(),
            other => panic!("{other:?}"),
        }
    })
}

#[test]
fn the_first_to_be_let_in_is_the_operator_and_nobody_after_him() {
    let home = Hermetic::with("");
    let approve = |platform: Platform, user: &str, more: &[&str]| {
        let code = asks(&home, platform, user);
        let all = [&["pairing", "approve", platform.name(), &code], more].concat();
        let ended = home.run(&all);
        assert_eq!(ended.code, 0, "{}", ended.err);
        ended.out
    };
    let first = approve(Platform::Telegram, "7", &[]);
    assert!(
        first.contains("is an operator: may answer approvals"),
        "{first}"
    );
    assert!(
        first.contains("pairing revoke"),
        "the way back is named: {first}"
    );
    for (platform, user, more) in [
        (Platform::Telegram, "8", &[][..]),
        (Platform::Discord, "9", &[]),
        (Platform::Telegram, "10", &["--user"]),
    ] {
        let said = approve(platform, user, more);
        assert!(!said.contains("operator"), "{said}");
    }
    let named = approve(Platform::Telegram, "11", &["--operator"]);
    assert!(named.contains("is an operator"), "{named}");
    let list = home.run(&["pairing", "list"]).out;
    let operators: Vec<_> = list
        .lines()
        .filter(|line| line.contains("operator"))
        .collect();
    assert_eq!(operators.len(), 2, "{list}");
    let audit = home.run(&["audit", "list"]).out;
    assert!(audit.contains("as operator"), "{audit}");
}

#[test]
fn where_the_configuration_names_an_operator_a_code_makes_none() {
    for config in [
        "approvals: {approvers: ['discord:5']}\n",
        "platforms: {telegram: {allowed_users: ['5']}}\n",
        "platforms: {telegram: {allow_admin_from: ['5']}}\n",
    ] {
        let home = Hermetic::with(config);
        let code = asks(&home, Platform::Telegram, "7");
        let ended = home.run(&["pairing", "approve", "telegram", &code]);
        assert!(
            ended.out.contains("may write on telegram now"),
            "{}",
            ended.err
        );
        assert!(!ended.out.contains("operator"), "{config}: {}", ended.out);
    }
}

#[test]
fn who_is_let_in_or_put_out_is_in_the_record_before_it_happens() {
    let home = Hermetic::with("");
    let code = asks(&home, Platform::Telegram, "7");
    assert_eq!(home.run(&["pairing", "approve", "telegram", &code]).code, 0);
    let acts = |home: &Hermetic| {
        let list = home.run(&["audit", "list", "--json"]).out;
        let acts = ["tried", "approved", "revoked"];
        let count = |act: &&str| list.matches(&format!("\"act\":\"{act}\"")).count();
        acts.iter().map(count).collect::<Vec<_>>()
    };
    assert_eq!(acts(&home), [1, 1, 0]);
    // Nobody is put out of whom the record says that they are.
    let nobody = home.run(&["pairing", "revoke", "telegram", "8"]);
    assert_ne!(nobody.code, 0);
    assert_eq!(acts(&home), [1, 1, 0]);

    // A record that cannot be written: its name is taken by a folder.
    let other = asks(&home, Platform::Telegram, "9");
    let record = home.path("hermetic/audit.jsonl");
    std::fs::rename(&record, home.path("hermetic/kept")).unwrap();
    std::fs::create_dir(&record).unwrap();
    for refused in [
        &["pairing", "approve", "telegram", &other][..],
        &["pairing", "revoke", "telegram", "7"],
    ] {
        assert_ne!(home.run(refused).code, 0, "{refused:?}");
    }
    let list = home.run(&["pairing", "list"]).out;
    let people: Vec<_> = list
        .lines()
        .filter(|line| line.contains("may write"))
        .collect();
    assert!(people.len() == 1 && people[0].contains('7'), "{list}");
}
