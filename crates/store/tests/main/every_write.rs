//! Every method of the store that writes, so that a test can try them all.

use futures::future::{BoxFuture, FutureExt};
use hermetic_store::{
    ApprovalRequest, ApprovalScope, BrowserMessageState, DeliveryRow, GivenAnswer, JobBounds,
    JobState, JobTerms, MemoryRequestRow, MemoryWrite, MessageEnd, MessageRow, NewBrowserFile,
    NewBrowserMessage, NewRequest, NextDelivery, PartOutcome, PriorAttempt, ProcessRow,
    PromptNotice, RequestReply, RequestState, RowOwner, RunKind, SaidOutcome, ScheduledJob,
    SkillDraftRow, Store, StoreError, StoredSubject, TickClaim, ViewBounds,
};
use hermetic_types::{BackendKind, ConversationKey, RequestId, RunId, SandboxId, Timestamp};

/// A message that is worked on, and what belongs to it.
pub(crate) struct Scene {
    pub(crate) store: Store,
    pub(crate) message: MessageRow,
    pub(crate) question: ApprovalRequest,
    pub(crate) answered: ApprovalRequest,
    pub(crate) sandbox: SandboxId,
    pub(crate) reply: DeliveryRow,
    pub(crate) sent: DeliveryRow,
    /// A conversation in the browser, with something that waits and something that was answered.
    pub(crate) talk: i64,
    pub(crate) waiting: i64,
    pub(crate) shown: i64,
}

/// A write by its name.
pub(crate) struct Write {
    pub(crate) name: &'static str,
    /// Whether it is on the disk when it returns.
    pub(crate) is_on_disk: bool,
    pub(crate) run: RunWrite,
}

pub(crate) fn now() -> Timestamp {
    Timestamp::from_millis(5_000)
}

pub(crate) fn key(name: &str) -> ConversationKey {
    ConversationKey::new(name)
}

pub(crate) async fn scene(store: Store) -> Scene {
    let remembered = store.account_state("t").save("gone", "1").await;
    remembered.unwrap();
    let inbox = store.inbox();
    let accepted = inbox.accept("t", "scene", &key("scene"), "{}", now()).await;
    let message = accepted.unwrap().unwrap();
    let (question, answered) = (ask(&store).await, ask(&store).await);
    answer(&store, &answered.id).await.unwrap();
    let sandbox = SandboxId::random();
    let ledger = store.ledger();
    ledger
        .name(&sandbox, &key("scene"), BackendKind::Native, "{}", now())
        .await
        .unwrap();
    let calls = store.tool_calls();
    let begun = calls.begin(message, "begun", "terminal", "{}", now()).await;
    begun.unwrap();
    let said = store.history().append(&key("scene"), "said", now()).await;
    said.unwrap();
    let chosen = store.conversation_models();
    chosen.choose(&key("scene"), "first").await.unwrap();
    store.processes().name(&process(&sandbox)).await.unwrap();
    let answered_before = inbox
        .accept("t", "before", &key("scene"), "{}", now())
        .await;
    let answered_before = answered_before.unwrap().unwrap();
    let written = ("t", "{}", "hi");
    add_job(&store, "scene").await.unwrap();
    let waiting = memory_request("waits", "scene");
    assert!(store.memories().ask(&waiting, (9, 9)).await.unwrap());
    let draft = skill_draft("waits");
    store.skill_drafts().put(&draft, (9, 9)).await.unwrap();
    let deliveries = store.deliveries();
    let reply = deliveries.queue_and_end(answered_before, MessageEnd::Answered, written, now());
    let reply = reply.await.unwrap();
    let sent = deliveries.queue_and_end(answered_before, MessageEnd::Answered, written, now());
    let sent = sent.await.unwrap();
    deliveries.sent(sent, now()).await.unwrap();
    let browser = store.browser_chat();
    let talk = browser.open(ADA, 9, now()).await.unwrap().unwrap();
    let said = browser.say(ADA, &words(talk, "said"), now()).await.unwrap();
    let SaidOutcome::Written(waiting) = said else {
        unreachable!("{said:?}");
    };
    let shown = browser.show(ADA, &words(talk, "shown"), "", now()).await;
    let shown = shown.unwrap().unwrap();
    Scene {
        store,
        talk,
        waiting,
        shown,
        message,
        question,
        answered,
        sandbox,
        reply,
        sent,
    }
}

fn memory_request(id: &str, owner: &str) -> MemoryRequestRow {
    MemoryRequestRow {
        id: id.to_owned(),
        owner: owner.to_owned(),
        target: "user".to_owned(),
        operations: "[]".to_owned(),
        asked_at: now(),
    }
}

fn skill_draft(digest: &str) -> SkillDraftRow {
    SkillDraftRow {
        owner: "owner".to_owned(),
        name: format!("deploy-{digest}"),
        digest: digest.to_owned(),
        body: "{}".to_owned(),
        written_at: now(),
    }
}

/// All of them but those that only tidy up: `prune`, `expire`, `forget_silent`.
pub(crate) fn every_write() -> Vec<Write> {
    let kinds = [
        message_writes(),
        conversation_writes(),
        reply_writes(),
        approval_writes(),
        sandbox_writes(),
        state_writes(),
        browser_writes(),
    ];
    kinds.into_iter().flatten().collect()
}

type RunWrite = fn(&Scene) -> BoxFuture<'_, Result<(), StoreError>>;

fn on_disk(name: &'static str, run: RunWrite) -> Write {
    Write {
        name,
        is_on_disk: true,
        run,
    }
}

fn soon(name: &'static str, run: RunWrite) -> Write {
    Write {
        name,
        is_on_disk: false,
        run,
    }
}

fn message_writes() -> Vec<Write> {
    vec![
        on_disk("inbox.accept", |scene| {
            async {
                let inbox = scene.store.inbox();
                let accepted = inbox.accept("t", "new", &key("new"), "{}", now()).await?;
                accepted.expect("a new message");
                Ok(())
            }
            .boxed()
        }),
        on_disk("scheduled_jobs.add", |scene| {
            async { add_job(&scene.store, "new").await }.boxed()
        }),
        on_disk("scheduled_jobs.claim", |scene| {
            async {
                let claim = TickClaim {
                    job: &"scene".parse().expect("an id"),
                    tick: now(),
                    how: RunKind::Schedule,
                    next_at: None,
                    account: "t",
                    update: "cron:scene",
                    conversation: &key("job"),
                    payload: "{}",
                    most_open: 4,
                };
                let claimed = scene.store.scheduled_jobs().claim(claim, now()).await?;
                claimed.expect("nobody has claimed it");
                Ok(())
            }
            .boxed()
        }),
        on_disk("inbox.rewrite", |scene| {
            async {
                scene
                    .store
                    .inbox()
                    .rewrite(scene.message, "{\"a\":1}")
                    .await
            }
            .boxed()
        }),
        soon("inbox.begin", |scene| {
            async { scene.store.inbox().begin(scene.message).await.map(drop) }.boxed()
        }),
        soon("inbox.take_back_attempt", |scene| {
            async { scene.store.inbox().take_back_attempt(scene.message).await }.boxed()
        }),
        on_disk("inbox.begin_once", |scene| {
            async {
                scene
                    .store
                    .inbox()
                    .begin_once(scene.message)
                    .await
                    .map(drop)
            }
            .boxed()
        }),
        on_disk("inbox.note_draft", |scene| {
            async { scene.store.inbox().note_draft(scene.message, "7").await }.boxed()
        }),
        soon("inbox.end", |scene| {
            async {
                let inbox = scene.store.inbox();
                inbox
                    .end(scene.message, MessageEnd::Answered, None, now())
                    .await
            }
            .boxed()
        }),
        on_disk("tool_calls.begin", |scene| {
            async {
                let calls = scene.store.tool_calls();
                calls
                    .begin(scene.message, "c", "terminal", "{}", now())
                    .await
            }
            .boxed()
        }),
        soon("tool_calls.end", |scene| {
            async {
                let calls = scene.store.tool_calls();
                let line = (&key("scene"), "{}");
                calls
                    .end((scene.message, "begun"), "done", line, now())
                    .await
                    .map(drop)
            }
            .boxed()
        }),
    ]
}

fn conversation_writes() -> Vec<Write> {
    vec![
        soon("history.append", |scene| {
            async {
                scene
                    .store
                    .history()
                    .append(&key("scene"), "{}", now())
                    .await
                    .map(drop)
            }
            .boxed()
        }),
        on_disk("history.compact", |scene| {
            async {
                let history = scene.store.history();
                history.compact(&key("scene"), 1, "shorter", now()).await
            }
            .boxed()
        }),
        on_disk("history.take_back", |scene| {
            async {
                let history = scene.store.history();
                let instead = Some("instead");
                history.take_back(&key("scene"), 1, instead, now()).await
            }
            .boxed()
        }),
        on_disk("conversation_models.choose", |scene| {
            async {
                let models = scene.store.conversation_models();
                models.choose(&key("scene"), "other").await
            }
            .boxed()
        }),
        on_disk("conversation_models.forget", |scene| {
            async {
                let models = scene.store.conversation_models();
                models.forget(&key("scene")).await
            }
            .boxed()
        }),
        on_disk("sessions.begin_anew", |scene| {
            async {
                let sessions = scene.store.sessions();
                sessions.begin_anew(&key("scene"), "s", "title").await
            }
            .boxed()
        }),
        on_disk("sessions.resume", |scene| {
            async {
                let sessions = scene.store.sessions();
                let key = key("scene");
                let resumed = sessions.resume(&key, "s", ("t", "other"), now());
                resumed.await.map(drop)
            }
            .boxed()
        }),
        on_disk("memories.replace", |scene| {
            async {
                let write = MemoryWrite {
                    owner: "owner",
                    target: "user",
                    entries: "likes tea",
                    expected: 0,
                    by_person: false,
                    most_rows: 9,
                };
                let memories = scene.store.memories();
                memories.replace(write, now()).await.map(drop)
            }
            .boxed()
        }),
        on_disk("memories.ask", |scene| {
            async {
                let memories = scene.store.memories();
                let request = memory_request("1", "owner");
                memories.ask(&request, (9, 9)).await.map(drop)
            }
            .boxed()
        }),
        on_disk("memories.settle", |scene| {
            async { scene.store.memories().settle("waits").await.map(drop) }.boxed()
        }),
        on_disk("memories.forget", |scene| {
            async { scene.store.memories().forget("scene").await.map(drop) }.boxed()
        }),
        on_disk("skill_drafts.put", |scene| {
            async {
                let drafts = scene.store.skill_drafts();
                drafts.put(&skill_draft("d"), (9, 9)).await.map(drop)
            }
            .boxed()
        }),
        on_disk("skill_drafts.settle", |scene| {
            async { scene.store.skill_drafts().settle("waits").await.map(drop) }.boxed()
        }),
        soon("look_back.note", |scene| {
            async {
                let rows = scene.store.look_back();
                rows.note(&key("scene"), "telegram:7").await
            }
            .boxed()
        }),
        soon("history.clear", |scene| {
            async { scene.store.history().clear(&key("scene")).await }.boxed()
        }),
    ]
}

fn reply_writes() -> Vec<Write> {
    vec![
        soon("deliveries.queue_and_end", |scene| {
            async { reply(scene).await.map(drop) }.boxed()
        }),
        on_disk("deliveries.hand_over", |scene| {
            async {
                let deliveries = scene.store.deliveries();
                let next = NextDelivery {
                    account: "t",
                    address: "{}".to_owned(),
                    text: "hi",
                    tried: PriorAttempt::MaybeSent,
                };
                deliveries
                    .hand_over(scene.reply, &PartOutcome::Sent, &[next], now())
                    .await
                    .map(drop)
            }
            .boxed()
        }),
        on_disk("deliveries.begin", |scene| {
            async { scene.store.deliveries().begin(scene.reply).await }.boxed()
        }),
        soon("deliveries.sent", |scene| {
            async { scene.store.deliveries().sent(scene.reply, now()).await }.boxed()
        }),
        soon("deliveries.put_back", |scene| {
            async {
                scene
                    .store
                    .deliveries()
                    .put_back(scene.reply, "later")
                    .await
            }
            .boxed()
        }),
        on_disk("deliveries.lost", |scene| {
            async {
                let deliveries = scene.store.deliveries();
                deliveries.lost(scene.sent, "t", "gone").await.map(drop)
            }
            .boxed()
        }),
        soon("deliveries.failed", |scene| {
            async { scene.store.deliveries().failed(scene.reply, "never").await }.boxed()
        }),
    ]
}

fn approval_writes() -> Vec<Write> {
    vec![
        on_disk("approvals.open", |scene| {
            async {
                let key = key("asked");
                let opened = scene.store.approvals().open(&question(&key)).await;
                opened.map(drop)
            }
            .boxed()
        }),
        on_disk("approvals.answer", |scene| {
            async { answer(&scene.store, &scene.question.id).await }.boxed()
        }),
        on_disk("approvals.spend", |scene| {
            async {
                let approvals = scene.store.approvals();
                assert!(approvals.spend(&scene.answered.id, now()).await?);
                Ok(())
            }
            .boxed()
        }),
        on_disk("approvals.close", |scene| {
            async {
                let approvals = scene.store.approvals();
                approvals
                    .close(&scene.question.id, RequestState::Withdrawn, now())
                    .await
            }
            .boxed()
        }),
        soon("approvals.recorded", |scene| {
            async { scene.store.approvals().recorded(&scene.answered.id).await }.boxed()
        }),
        soon("approvals.showing", |scene| {
            async {
                let approvals = scene.store.approvals();
                approvals.showing(&scene.question.id, "t", "{}").await
            }
            .boxed()
        }),
        soon("approvals.shown", |scene| {
            async {
                let notice = PromptNotice {
                    account: "t".to_owned(),
                    place: "{}".to_owned(),
                    message: "9".to_owned(),
                };
                scene
                    .store
                    .approvals()
                    .shown(&scene.question.id, &notice)
                    .await
            }
            .boxed()
        }),
        on_disk("approvals.add_button", |scene| {
            async {
                let approvals = scene.store.approvals();
                approvals
                    .add_button(&scene.question.id, "token", "yes")
                    .await
            }
            .boxed()
        }),
        on_disk("approvals.revoke", |scene| {
            async {
                scene
                    .store
                    .approvals()
                    .revoke(&key("scene"))
                    .await
                    .map(drop)
            }
            .boxed()
        }),
    ]
}

fn sandbox_writes() -> Vec<Write> {
    vec![
        on_disk("ledger.name", |scene| {
            async {
                let (ledger, id) = (scene.store.ledger(), SandboxId::random());
                let whose = key("named");
                let named = ledger.name(&id, &whose, BackendKind::Native, "{}", now());
                named.await
            }
            .boxed()
        }),
        on_disk("ledger.give", |scene| {
            async {
                let ledger = scene.store.ledger();
                ledger
                    .give(&scene.sandbox, &key("given"), "{}", now())
                    .await
            }
            .boxed()
        }),
        on_disk("ledger.mark running", |scene| {
            async {
                let state = hermetic_store::LedgerState::Running;
                scene.store.ledger().mark(&scene.sandbox, state).await
            }
            .boxed()
        }),
        soon("ledger.mark", |scene| {
            async {
                let state = hermetic_store::LedgerState::Stopping;
                scene.store.ledger().mark(&scene.sandbox, state).await
            }
            .boxed()
        }),
        on_disk("ledger.set_aside", |scene| {
            async { scene.store.ledger().set_aside(&scene.sandbox, now()).await }.boxed()
        }),
        on_disk("ledger.take_back", |scene| {
            async { scene.store.ledger().take_back(&scene.sandbox).await }.boxed()
        }),
        soon("ledger.touch", |scene| {
            async {
                scene
                    .store
                    .ledger()
                    .touch(&scene.sandbox, Timestamp::from_millis(9_000))
                    .await
            }
            .boxed()
        }),
        soon("ledger.note_failure", |scene| {
            async {
                scene
                    .store
                    .ledger()
                    .note_failure(&scene.sandbox, "busy")
                    .await
            }
            .boxed()
        }),
        soon("ledger.forget", |scene| {
            async { scene.store.ledger().forget(&scene.sandbox).await }.boxed()
        }),
        soon("ledger.forget_events", |scene| {
            async {
                let later = Timestamp::from_millis(9_000_000_000_000);
                scene.store.ledger().forget_events(later).await.map(drop)
            }
            .boxed()
        }),
        on_disk("processes.name", |scene| {
            async {
                let row = process(&scene.sandbox);
                scene.store.processes().name(&row).await
            }
            .boxed()
        }),
        soon("processes.forget_all_of", |scene| {
            async { scene.store.processes().forget_all_of(&key("scene")).await }.boxed()
        }),
    ]
}

fn state_writes() -> Vec<Write> {
    vec![
        on_disk("documents.replace", |scene| {
            async {
                let documents = scene.store.documents();
                let replaced = documents.replace("pairings", "x", 0).await?;
                assert_eq!(replaced, hermetic_store::ReplaceOutcome::Yes);
                Ok(())
            }
            .boxed()
        }),
        soon("documents.put", |scene| {
            async { scene.store.documents().put("offset", "1").await }.boxed()
        }),
        on_disk("account_state.save", |scene| {
            async { scene.store.account_state("t").save("a", "1").await }.boxed()
        }),
        soon("account_state.save_soon", |scene| {
            async { scene.store.account_state("t").save_soon("b", "1").await }.boxed()
        }),
        on_disk("account_state.remove", |scene| {
            async { scene.store.account_state("t").remove("gone").await }.boxed()
        }),
    ]
}

fn browser_writes() -> Vec<Write> {
    vec![
        on_disk("browser_chat.open", |scene| {
            async {
                let opened = scene.store.browser_chat().open(ADA, 9, now()).await;
                opened.map(drop)
            }
            .boxed()
        }),
        on_disk("browser_chat.say", |scene| {
            async {
                let said = words(scene.talk, "more");
                let said = scene.store.browser_chat().say(ADA, &said, now()).await?;
                assert!(matches!(said, SaidOutcome::Written(_)), "{said:?}");
                Ok(())
            }
            .boxed()
        }),
        soon("browser_chat.show", |scene| {
            async {
                let shown = words(scene.talk, "reply");
                let rows = scene.store.browser_chat();
                rows.show(ADA, &shown, "[]", now()).await.map(drop)
            }
            .boxed()
        }),
        soon("browser_chat.change", |scene| {
            async {
                let rows = scene.store.browser_chat();
                let whose = (ADA, scene.talk);
                rows.change(whose, scene.shown, "changed", "")
                    .await
                    .map(drop)
            }
            .boxed()
        }),
        soon("browser_chat.note_press", |scene| {
            async {
                let rows = scene.store.browser_chat();
                rows.note_press(ADA, scene.shown, "allowed").await
            }
            .boxed()
        }),
        soon("browser_chat.settle", |scene| {
            async {
                let rows = scene.store.browser_chat();
                rows.settle(scene.waiting, BrowserMessageState::Taken).await
            }
            .boxed()
        }),
        on_disk("browser_chat.forget", |scene| {
            async {
                let rows = scene.store.browser_chat();
                assert!(rows.forget(ADA, scene.talk).await?);
                Ok(())
            }
            .boxed()
        }),
    ]
}

const ADA: &str = "dashboard:ada";

fn words(talk: i64, text: &str) -> NewBrowserMessage {
    NewBrowserMessage {
        conversation: talk,
        text: text.to_owned(),
        key: Some(text.to_owned()),
        files: vec![NewBrowserFile {
            name: format!("{text}.txt"),
            mime: None,
            bytes: text.as_bytes().to_vec(),
        }],
    }
}

/// Everything that can be read, as text: two stores that say the same hold the same.
pub(crate) async fn told(store: &Store) -> String {
    let approvals = store.approvals();
    let documents = store.documents();
    let browser = store.browser_chat();
    format!(
        "{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}",
        (
            browser.conversations(ADA, 9).await.unwrap(),
            browser.messages(ADA, 1, None, 9).await.unwrap(),
            browser.waiting(RowOwner::ThisGateway).await.unwrap(),
            browser.kept_bytes(ADA).await.unwrap(),
        ),
        store.inbox().open(RowOwner::ThisGateway).await.unwrap(),
        store.tool_calls().of(MessageRow(1)).await.unwrap(),
        store.history().recent(&key("scene"), 99).await.unwrap(),
        store
            .history()
            .view(&key("scene"), ViewBounds::default())
            .await
            .unwrap(),
        store.sessions().of(&key("scene")).await.unwrap(),
        store.deliveries().due(RowOwner::ThisGateway).await.unwrap(),
        approvals
            .pending(RowOwner::ThisGateway, Timestamp::from_millis(0))
            .await
            .unwrap(),
        approvals.unrecorded(RowOwner::ThisGateway).await.unwrap(),
        (
            store.ledger().entries(RowOwner::ThisGateway).await.unwrap(),
            store
                .ledger()
                .events(&key("scene"), Timestamp::from_millis(0), 99)
                .await
                .unwrap()
                .into_iter()
                .map(|one| (one.sandbox, one.what, one.note))
                .collect::<Vec<_>>(),
        ),
        store.processes().all(RowOwner::ThisGateway).await.unwrap(),
        (
            store
                .scheduled_jobs()
                .all(RowOwner::ThisGateway)
                .await
                .unwrap(),
            store.scheduled_jobs().running().await.unwrap(),
            documents.load("pairings").await.unwrap(),
            documents.load("offset").await.unwrap(),
            store.account_state("t").load_all("").await.unwrap(),
            approvals.pressed("token").await.unwrap(),
            approvals
                .is_granted(&key("scene"), StoredSubject::Command, "f", now())
                .await
                .unwrap(),
        ),
    )
}

async fn add_job(store: &Store, id: &str) -> Result<(), StoreError> {
    let job = ScheduledJob {
        id: id.parse().expect("an id"),
        person: "alice".to_owned(),
        name: "n".to_owned(),
        prompt: "p".to_owned(),
        terms: JobTerms::default(),
        schedule: "s".to_owned(),
        origin: "{}".to_owned(),
        deliver: "origin".to_owned(),
        runs_left: None,
        state: JobState::Scheduled,
        why: None,
        next_at: Some(now()),
        requested: None,
        failures: 0,
        made_at: now(),
    };
    let bounds = JobBounds {
        of_person: 9,
        of_all: 9,
    };
    store.scheduled_jobs().add(&job, bounds).await.map(drop)
}

pub(crate) fn process(sandbox: &SandboxId) -> ProcessRow {
    ProcessRow {
        id: RunId::random(),
        conversation: key("scene"),
        sandbox: sandbox.clone(),
        terms: "{}".to_owned(),
        begun_at: now(),
    }
}

async fn reply(scene: &Scene) -> Result<DeliveryRow, StoreError> {
    let deliveries = scene.store.deliveries();
    let reply = ("t", "{}", "hi");
    let queued = deliveries.queue_and_end(scene.message, MessageEnd::Answered, reply, now());
    queued.await
}

pub(crate) async fn ask(store: &Store) -> ApprovalRequest {
    let opened = store.approvals().open(&question(&key("scene"))).await;
    opened.unwrap()
}

async fn answer(store: &Store, id: &RequestId) -> Result<(), StoreError> {
    let reply = RequestReply {
        given: GivenAnswer::Yes(ApprovalScope::Session),
        by: "alice",
        via: "chat",
        reason: None,
    };
    let outcome = store.approvals().answer(id, reply, now()).await?;
    assert!(
        matches!(outcome, hermetic_store::AnswerOutcome::First(_)),
        "{outcome:?}"
    );
    Ok(())
}

fn question(conversation: &ConversationKey) -> NewRequest<'_> {
    NewRequest {
        subject: StoredSubject::Command,
        conversation,
        message: None,
        what: "rm x",
        fingerprint: "f",
        reasons: &[],
        longest: ApprovalScope::Always,
        asker: "alice",
        asked_at: now(),
        expires_at: Timestamp::from_millis(60_000),
    }
}
