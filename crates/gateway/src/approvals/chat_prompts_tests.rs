use std::collections::BTreeSet;

use hermetic_approvals::ApprovalParts;
use hermetic_audit::AuditLog;
use hermetic_store::{ApprovalScope, NewRequest, Store};
use hermetic_types::{ConversationKey, SystemClock, Timestamp};

use super::*;
use crate::test_chat::{ABLE, NotingChat};
use crate::test_lab::TestLab;

/// Two bots of one platform, and a platform without buttons.
struct PromptLab {
    prompts: ChatPrompts,
    request: ApprovalRequest,
    store: Store,
    own: Arc<NotingChat>,
    work: Arc<NotingChat>,
    signal: Arc<NotingChat>,
    _folder: tempfile::TempDir,
}

impl PromptLab {
    async fn new(approvers: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("s.db"), SystemClock::shared())
            .await
            .unwrap();
        let redactor = Redactor::new([], hermetic_redact::RedactorSettings::default());
        let approvals = ApprovalRegistry::new(ApprovalParts {
            store: &store,
            audit: Arc::new(AuditLog::open(&folder.path().join("audit.jsonl")).unwrap()),
            redactor: redactor.clone(),
            timeout: Duration::from_secs(60),
            reviewer: None,
            clock: SystemClock::shared(),
            metrics: hermetic_approvals::ApprovalMetrics::default(),
        });
        let own = Arc::new(NotingChat::new("discord"));
        let work = Arc::new(NotingChat::new("discord/work"));
        let without_buttons = hermetic_chat::Capabilities {
            buttons: None,
            ..ABLE
        };
        let signal = Arc::new(NotingChat::with("signal", without_buttons));
        let chats: [Arc<dyn Chat>; 3] = [own.clone(), work.clone(), signal.clone()];
        let approvers = approvers.iter().map(|(account, user)| {
            let user = UserId::new(*user).unwrap();
            (account.parse().unwrap(), user)
        });
        let rows = store.approvals();
        let conversation = ConversationKey::new("agent:main:discord:dm:7");
        let question = NewRequest {
            subject: StoredSubject::Command,
            conversation: &conversation,
            message: None,
            what: "rm -r build",
            fingerprint: "f",
            reasons: &[],
            longest: ApprovalScope::Always,
            asker: "discord:7",
            asked_at: Timestamp::from_millis(0),
            expires_at: Timestamp::from_millis(60_000),
        };
        let request = rows.open(&question).await.unwrap();
        Self {
            prompts: ChatPrompts::new(approvals, &chats, redactor, approvers.collect()),
            request,
            store,
            own,
            work,
            signal,
            _folder: folder,
        }
    }

    async fn show(&self, speaker: Option<PromptSpeaker>) -> Result<(), NobodyToAsk> {
        let prompt = ChatPrompt {
            prompts: self.prompts.clone(),
            speaker,
        };
        prompt.show(&self.request).await
    }
}

#[tokio::test]
async fn each_approver_is_asked_alone_by_the_account_they_are_listed_with() {
    let approvers = [
        ("discord/work", "alice"),
        ("signal", "bob"),
        ("slack", "eve"),
    ];
    let lab = PromptLab::new(&approvers).await;
    lab.show(None).await.unwrap();
    assert_eq!(lab.own.noted(), [""; 0]);
    let work = lab.work.noted();
    assert_eq!(work[0], "open alice");
    assert!(work[1].starts_with("send to dm-alice:"), "{work:?}");
    assert!(work[1].ends_with("(3 buttons)"), "{work:?}");
    let signal = lab.signal.noted();
    assert!(signal[1].ends_with("(0 buttons)"), "{signal:?}");
    let shown = lab
        .store
        .approvals()
        .notices(&lab.request.id)
        .await
        .unwrap();
    // All are asked at once, so whoever answers first is written down first.
    let accounts: BTreeSet<_> = shown.iter().map(|notice| notice.account.as_str()).collect();
    assert_eq!(accounts, BTreeSet::from(["discord/work", "signal"]));
}

#[tokio::test]
async fn who_cannot_be_reached_is_not_waited_for_and_nobody_is_a_no() {
    let lab = PromptLab::new(&[("discord", "nobody"), ("discord", "alice")]).await;
    lab.show(None).await.unwrap();
    assert_eq!(lab.own.noted()[0], "open alice");
    let lab = PromptLab::new(&[("discord", "nobody")]).await;
    assert_eq!(lab.show(None).await, Err(NobodyToAsk::NoApprover));
}

#[tokio::test]
async fn who_may_answer_is_asked_where_they_spoke() {
    let lab = PromptLab::new(&[("discord", "alice")]).await;
    let speaker = PromptSpeaker {
        account: "discord/work".parse().unwrap(),
        place: TestLab::place(7),
        approves: true,
    };
    lab.show(Some(speaker)).await.unwrap();
    assert_eq!(lab.own.noted(), [""; 0]);
    assert!(lab.work.noted()[0].starts_with("send to 7:"));
}
