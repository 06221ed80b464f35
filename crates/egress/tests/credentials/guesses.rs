//! A sandbox that has its host say guesses: what is taken out of the answers must not give the credential
//! away.

use std::sync::Arc;

use hermetic_egress::{
    CertificateAuthority, ConversationEgress, Credential, CredentialGrant, Egress, EgressDecision,
    EgressRules, RuleBook, RulesText, TrustRoots,
};
use hermetic_types::{ConversationKey, Secret, SystemClock};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::io::AsyncWriteExt;

use crate::lab::origin::{Origin, head};
use crate::lab::tls::{self, Identity};
use crate::lab::{Lab, Setup, local, read_all, read_head};

/// The first letters are the same in every such token.
const SECRET: &str = "github_pat_11ABCDEFG0q7w2e9r4t6y1u8i3o5p0aSdFgHjKlZxCvBnM";
const LETTERS: &str = "abcdefghijklmnopqrstuvwxyz0123456789";

const KEY: &str = "agent:main:test:dm:1";

struct Guesser {
    lab: Lab,
    egress: Egress,
    rules: EgressRules,
    book: RuleBook,
    conversation: Arc<ConversationEgress>,
    origin: Origin,
    ca: CertificateDer<'static>,
    _folder: tempfile::TempDir,
}

impl Guesser {
    /// At a host that says whatever it is asked to, as one does where files can be put.
    async fn new(secret: &str) -> Self {
        let identity = Identity::of("api.test");
        let trusted = identity.certificate.clone();
        let origin = identity
            .serve(move |mut stream| async move {
                while let Some(head) = head(&mut stream).await {
                    let said = |line: &str| line.strip_prefix("X-Say: ").map(str::to_owned);
                    let body = match head.lines().find_map(said) {
                        Some(said) if said == "your header" => {
                            let sent = |line: &str| {
                                line.strip_prefix("Authorization: ").map(str::to_owned)
                            };
                            head.lines().find_map(sent).unwrap_or_default()
                        }
                        said => said.unwrap_or_default(),
                    };
                    let length = body.len();
                    let answer =
                        format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}");
                    if stream.write_all(answer.as_bytes()).await.is_err() {
                        return;
                    }
                }
            })
            .await;
        let authority = Arc::new(CertificateAuthority::ephemeral(SystemClock::shared()).unwrap());
        let ca = CertificateDer::from_pem_slice(authority.certificate().as_bytes()).unwrap();
        let host = format!("api.test:{}", origin.at.port());
        let scheme = if secret.contains(':') {
            "basic"
        } else {
            "Bearer"
        };
        let secret = Secret::new(secret);
        let credential = Credential::new(&host, "Authorization", scheme, secret, "placeholder");
        let lab = Lab::new(Setup {
            interception: Some((authority, TrustRoots::Only(vec![trusted]))),
            ..Setup::default()
        });
        let rules = EgressRules {
            rules: RulesText::allowing([local("api.test", origin.at)]),
            credentials: vec![CredentialGrant {
                credential: credential.unwrap(),
                scope: None,
                variable: None,
                agent: None,
            }],
            ..EgressRules::default()
        };
        let folder = tempfile::tempdir().unwrap();
        let book = RuleBook::at(folder.path().join("egress.rules"));
        let egress = Egress::new(lab.proxy.clone(), rules.clone()).unwrap();
        let egress = egress.reading(book.clone());
        let conversation = egress.conversation(&ConversationKey::new(KEY));
        Self {
            lab,
            egress,
            rules,
            book,
            conversation,
            origin,
            ca,
            _folder: folder,
        }
    }

    fn rule(&self) -> String {
        format!("api.test:{}", self.origin.at.port())
    }

    /// Guesses letter after letter until that is refused; what was learnt.
    async fn guess_on(&self, known: &str) -> String {
        let mut known = known.to_owned();
        while let Ok(next) = self.next_letter(&known[known.len() - 15..]).await {
            known.push(next.expect("one of the letters is right"));
            if known.len() == letters(SECRET).len() {
                break;
            }
        }
        known
    }

    /// What comes back of a text; the refusal where the host is not reached any more.
    async fn says(&self, text: &str) -> Result<String, String> {
        let target = format!("api.test:{}", self.origin.at.port());
        let mut stream = self.lab.dial_as(&self.conversation);
        let connect = format!("CONNECT {target} HTTP/1.1\r\n\r\n");
        stream.write_all(connect.as_bytes()).await.unwrap();
        let granted = read_head(&mut stream).await;
        if !granted.starts_with("HTTP/1.1 200") {
            return Err(granted + &read_all(&mut stream).await);
        }
        let mut stream = tls::connect(stream, "api.test", &self.ca).await.unwrap();
        let request = format!(
            "GET / HTTP/1.1\r\nHost: {target}\r\nX-Say: {text}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let answer = read_all(&mut stream).await;
        match answer.split_once("\r\n\r\n") {
            Some((head, body)) if head.starts_with("HTTP/1.1 200") => Ok(body.to_owned()),
            _ => Err(answer),
        }
    }

    /// All letters that may come next, in one answer: the one that is right comes back as stars.
    async fn next_letter(&self, known: &str) -> Result<Option<char>, String> {
        const APART: &str = "....................";
        let tries: Vec<String> = LETTERS
            .chars()
            .map(|next| format!("{known}{next}"))
            .collect();
        let said = self.says(&tries.join(APART)).await?;
        let said: Vec<&str> = said.split(APART).collect();
        let right = LETTERS
            .chars()
            .zip(said)
            .find(|(_, said)| said.contains('*'));
        Ok(right.map(|(letter, _)| letter))
    }
}

fn letters(text: &str) -> String {
    let letters = text.chars().filter(char::is_ascii_alphanumeric);
    letters.collect::<String>().to_lowercase()
}

#[tokio::test]
async fn whoever_guesses_at_a_credential_loses_it_before_it_is_known() {
    let guesser = Guesser::new(SECRET).await;
    let whole = letters(SECRET);
    let known = guesser.guess_on(&whole[..15]).await;
    assert!(known.len() <= 15 + 8, "it gave away {known}");
    let lift = format!("hermetic egress forget {} --for test:dm:1", guesser.rule());
    let refusal = guesser.says("hello").await.unwrap_err();
    assert!(
        refusal.contains("403") && refusal.contains(&lift),
        "{refusal}"
    );

    // The person is told, and it is written down.
    let told = guesser.conversation.take_refused();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].target.starts_with(&guesser.rule()) && told[0].remedy == lift,
        "{told:?}"
    );
    let entries = guesser.lab.finished().await;
    let noted = entries.iter().any(|entry| {
        matches!(&entry.verdict, EgressDecision::Refused { reason } if reason.starts_with("credential-guessed: "))
    });
    assert!(noted, "{entries:?}");
}

#[tokio::test]
async fn a_lost_credential_comes_back_by_an_operators_word_alone() {
    let mut guesser = Guesser::new(SECRET).await;
    let whole = letters(SECRET);
    guesser.guess_on(&whole[..15]).await;
    let denied = guesser.book.read().unwrap();
    assert_eq!(denied.len(), 1, "{denied:?}");
    assert_eq!(
        denied[0].to_string(),
        format!("deny {} for test:dm:1", guesser.rule())
    );

    // Neither waiting until the conversation is let go nor a restart gives it back.
    let key = ConversationKey::new(KEY);
    guesser.conversation = guesser
        .egress
        .conversation(&ConversationKey::new("another"));
    guesser.conversation = guesser.egress.conversation(&key);
    assert!(guesser.says("hello").await.is_err());
    let restarted = Egress::new(guesser.lab.proxy.clone(), guesser.rules.clone()).unwrap();
    guesser.egress = restarted.reading(guesser.book.clone());
    guesser.conversation = guesser.egress.conversation(&key);
    assert!(guesser.says("hello").await.is_err());
    // Another conversation has it as ever.
    guesser.conversation = guesser
        .egress
        .conversation(&ConversationKey::new("another"));
    assert_eq!(guesser.says("hello").await.unwrap(), "hello");

    // The operator gives it back, and it can be lost again.
    let scope = "test:dm:1".parse().unwrap();
    for _ in 0..2 {
        assert!(guesser.book.forget(&guesser.rule(), Some(&scope)).unwrap());
        guesser.egress.refresh();
        guesser.conversation = guesser.egress.conversation(&key);
        assert_eq!(guesser.says("hello").await.unwrap(), "hello");
        guesser.guess_on(&whole[..15]).await;
        assert!(guesser.says("hello").await.is_err());
    }
}

/// Each conversation is a new one for the count, so what all have learnt counts as well.
#[tokio::test]
async fn many_conversations_learn_little_more_than_two() {
    let mut guesser = Guesser::new(SECRET).await;
    let mut known = letters(SECRET)[..15].to_owned();
    for thread in 0..8 {
        let key = ConversationKey::new(format!("agent:main:test:dm:1:{thread}"));
        guesser.conversation = guesser.egress.conversation(&key);
        known = guesser.guess_on(&known).await;
    }
    assert!(known.len() <= 15 + 2 * 8 + 6, "they learnt {known}");
}

#[tokio::test]
async fn a_guess_from_the_back_costs_as_much() {
    let guesser = Guesser::new(SECRET).await;
    let whole = letters(SECRET);
    let mut known = whole[whole.len() - 15..].to_owned();
    loop {
        assert!(known.len() < 15 + 9, "it gave away {known}");
        let mut found = None;
        for letter in LETTERS.chars() {
            // All that is known, so that where it ends is nothing new.
            match guesser.says(&format!("<{letter}{known}>")).await {
                Ok(said) if said.starts_with("<*") => found = Some(letter),
                Ok(_) => {}
                Err(_) => return,
            }
        }
        known.insert(0, found.expect("one of them is right"));
    }
}

#[tokio::test]
async fn who_is_sent_the_whole_credential_in_every_answer_keeps_it() {
    let guesser = Guesser::new(SECRET).await;
    for round in 0..40 {
        let said = guesser.says("your header").await.unwrap();
        assert!(
            said.starts_with("Bearer ***") && !said.contains("github"),
            "{round}: {said}"
        );
        // The same part again and again tells nothing new.
        let said = guesser
            .says(&format!("{round} github_pat_11ABCDEFG0..."))
            .await
            .unwrap();
        assert!(said.contains("***"), "{round}: {said}");
        // Escaped, some of the searches see pieces of it only.
        let escaped = SECRET.replace('_', "%5F");
        assert!(guesser.says(&escaped).await.unwrap().contains("***"));
    }
    assert!(guesser.conversation.take_refused().is_empty());
}

#[tokio::test]
async fn a_short_credential_is_not_told_letter_by_letter_either() {
    let secret = "x-access-token:hunter2!pw-9";
    let guesser = Guesser::new(secret).await;
    let whole = letters(secret);
    let mut known = whole[..15].to_owned();
    while let Ok(next) = guesser.next_letter(&known[known.len() - 15..]).await {
        known.extend(next);
        assert!(known.len() <= 15 + 3, "it gave away {known}");
    }
}
