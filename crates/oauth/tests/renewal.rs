//! Tokens that end, and who renews them.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use hermetic_oauth::{AuthChallenge, BearerError};
use hermetic_types::Secret;
use tokio::sync::Notify;

use crate::authority::{Installation, Lies, field, honest};

fn ending() -> Lies {
    Lies {
        expires_in: Some(3600),
        rotates: true,
        ..Lies::default()
    }
}

#[tokio::test]
async fn a_token_is_renewed_before_it_ends_and_its_successor_is_hidden() {
    let own = Installation::with(ending()).await;
    own.log_in(honest).await.unwrap();
    let bearer = own.bearer();
    assert_eq!(bearer.token().await.unwrap().expose(), "access-number-1");
    own.clock.pass(3590);
    assert_eq!(bearer.token().await.unwrap().expose(), "access-number-2");
    assert_eq!(bearer.token().await.unwrap().expose(), "access-number-2");
    let asked = own.authority.asked.lock().unwrap().clone();
    assert_eq!(asked.len(), 2);
    assert!(
        asked[1].contains("refresh_token=refresh-number-1"),
        "{}",
        asked[1]
    );
    assert!(asked[1].contains("resource=http"), "{}", asked[1]);
    let said = own
        .redactor
        .redact("access-number-2 refresh-number-2")
        .into_inner();
    assert!(!said.contains("number"), "{said}");
    // The next gateway goes on with it.
    own.clock.pass(3600);
    assert_eq!(
        own.bearer().token().await.unwrap().expose(),
        "access-number-3"
    );
}

#[tokio::test]
async fn many_gateways_at_once_spend_a_refresh_token_once() {
    let own = Installation::with(ending()).await;
    own.log_in(honest).await.unwrap();
    own.clock.pass(4000);
    let gateways: Vec<_> = (0..8).map(|_| own.bearer()).collect();
    let tokens = gateways.into_iter().map(|gateway| {
        tokio::spawn(async move { gateway.token().await.unwrap().expose().to_owned() })
    });
    for token in tokens {
        assert_eq!(token.await.unwrap(), "access-number-2");
    }
    assert_eq!(own.authority.asked.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_renewal_outlives_whoever_waited_for_it() {
    let own = Installation::with(ending()).await;
    own.log_in(honest).await.unwrap();
    own.clock.pass(4000);
    let (there, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    *own.authority.hold.lock().unwrap() = Some((Arc::clone(&there), Arc::clone(&go_on)));
    let bearer = own.bearer();
    let waiting = tokio::spawn(async move { bearer.token().await });
    there.notified().await;
    // The turn is interrupted while the token is being spent.
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    *own.authority.hold.lock().unwrap() = None;
    go_on.notify_one();
    // Waits for the lock that the renewal holds.
    assert_eq!(
        own.bearer().token().await.unwrap().expose(),
        "access-number-2"
    );
    assert_eq!(own.authority.asked.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_refused_token_is_renewed_once_and_a_login_that_is_over_says_so() {
    let own = Installation::with(ending()).await;
    own.log_in(honest).await.unwrap();
    let bearer = own.bearer();
    let held = bearer.token().await.unwrap();
    let renewed = bearer.after_refusal(held.clone()).await.unwrap();
    assert_eq!(renewed.expose(), "access-number-2");
    // Who was refused the old one meanwhile is given the new one.
    let again = bearer.after_refusal(held).await.unwrap();
    assert_eq!(again, renewed);
    assert_eq!(own.authority.asked.lock().unwrap().len(), 2);
    // Somebody logged this client out at the authority.
    own.authority.lies.lock().unwrap().rotates = true;
    let text = std::fs::read_to_string(own.path()).unwrap();
    std::fs::write(
        own.path(),
        text.replace("refresh-number-2", "refresh-number-0"),
    )
    .unwrap();
    for _ in 0..3 {
        let over = bearer.after_refusal(renewed.clone()).await.unwrap_err();
        assert!(matches!(over, BearerError::Over { .. }));
        assert!(
            over.to_string().contains("hermetic mcp login tracker"),
            "{over}"
        );
    }
    assert_eq!(
        own.authority.asked.lock().unwrap().len(),
        3,
        "it is not asked for ever"
    );
}

#[tokio::test]
async fn a_refresh_token_is_not_spent_where_its_successor_cannot_be_kept() {
    if rustix::process::geteuid().is_root() {
        eprintln!(
            "SKIP: renewal::a_refresh_token_is_not_spent_where_its_successor_cannot_be_kept: \
             root can write everywhere"
        );
        return;
    }
    let own = Installation::with(ending()).await;
    own.log_in(honest).await.unwrap();
    own.clock.pass(4000);
    let folder = own.path().parent().unwrap().to_owned();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o500)).unwrap();
    assert!(own.bearer().token().await.is_err());
    assert_eq!(own.authority.asked.lock().unwrap().len(), 1, "it was spent");
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(
        own.bearer().token().await.unwrap().expose(),
        "access-number-2"
    );
}

#[tokio::test]
async fn a_login_is_for_one_address() {
    let own = Installation::with(ending()).await;
    own.log_in(honest).await.unwrap();
    let text = std::fs::read_to_string(own.path()).unwrap();
    let server = own.authority.server();
    let moved = text.replace(
        &format!("\"server\":\"{server}\""),
        "\"server\":\"https://other.test/mcp\"",
    );
    assert_ne!(moved, text);
    std::fs::write(own.path(), moved).unwrap();
    assert!(matches!(
        own.bearer().token().await,
        Err(BearerError::NoLogin(_))
    ));
}

#[tokio::test]
async fn what_a_server_asks_for_later_is_asked_for_at_the_next_login() {
    let own = Installation::with(ending()).await;
    own.log_in(honest).await.unwrap();
    let header = "Bearer error=\"insufficient_scope\", scope=\"write\"";
    let challenge = AuthChallenge::read([header]).unwrap();
    own.bearer().note(challenge).await.unwrap();
    let summary = own.file.summary().unwrap().unwrap();
    assert_eq!(summary.wanted.as_deref(), Some("write"));
    // The token of before is still there.
    assert_eq!(
        own.bearer().token().await.unwrap(),
        Secret::new("access-number-1")
    );
    let address = own.log_in(honest).await.unwrap();
    assert_eq!(field(&address, "scope"), "read write");
    assert_eq!(own.file.summary().unwrap().unwrap().wanted, None);
}

#[tokio::test]
async fn one_login_does_not_fill_what_is_taken_out_of_texts() {
    let own = Installation::with(ending()).await;
    own.log_in(honest).await.unwrap();
    let bearer = own.bearer();
    let mut given = vec![bearer.token().await.unwrap()];
    for _ in 0..5 {
        let refused = given.last().unwrap().clone();
        given.push(bearer.after_refusal(refused).await.unwrap());
    }
    let is_hidden = |token: &hermetic_types::Secret| {
        let shown = own.redactor.redact(format!("it says {}", token.expose()));
        !shown.as_str().contains(token.expose())
    };
    let hidden: Vec<_> = given.iter().map(is_hidden).collect();
    assert_eq!(hidden, [false, false, false, false, true, true]);
}
