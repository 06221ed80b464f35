//! An answer, shown in the chat while it is written.
//!
//! The model's words go through redaction as a stream: what may be the beginning of a secret is held
//! back until it is known not to be one, so no edit shows half of it. The last edit is not made here:
//! it is the reply, which takes the way of every reply, through the ledger.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermetic_agent::{ToolCall, ToolResult, TurnObserver};
use hermetic_chat::{Chat, DraftMessage, OutgoingText};
use hermetic_redact::{Redactor, StreamRedactor};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::Gateway;
use crate::delivery::without_tags;
use crate::message::AcceptedMessage;

/// How answers are shown while they grow.
#[derive(Clone, Debug)]
pub struct StreamingSettings {
    /// Not more often than this.
    pub every: Duration,
    /// Nothing is shown before there is so much to see: a short answer is one message.
    pub threshold: usize,
    /// Stands at the end of what still grows.
    pub cursor: String,
    pub progress: ToolProgress,
}

/// How much is shown of the tools that a turn uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolProgress {
    Off,
    /// A tool's name, when it is another than the one before.
    New,
    /// Each call, with the beginning of its arguments.
    #[default]
    All,
    /// Each call, with its arguments.
    Verbose,
}

/// What a turn has said so far.
#[derive(Debug)]
pub(crate) struct LiveReply {
    redactor: Redactor,
    progress: ToolProgress,
    page: Mutex<LivePage>,
    changed: Notify,
}

#[derive(Debug)]
struct LivePage {
    /// Answers that are whole, of a turn that goes on with another one.
    settled: String,
    stream: StreamRedactor,
    /// What redaction gave out; its end may be no whole character yet.
    given: Vec<u8>,
    doing: Option<String>,
    /// What is thought goes through redaction as a stream too: its beginning is cut off, and half a secret does not
    /// look like one.
    thoughts: StreamRedactor,
    /// The end of what is thought at the moment.
    thought: Vec<u8>,
    plan: Option<String>,
    /// When what is done is shown although nothing was said yet.
    shown_alone_at: Option<Instant>,
    /// The tool that was shown last.
    last_tool: Option<String>,
}

/// The turn has ended and waits for a showing that is under way.
const LAST_SHOWING: Duration = Duration::from_secs(5);
/// A call that ends sooner is not shown by itself: a message that goes at once is only noise.
const PATIENCE_WITH_A_CALL: Duration = Duration::from_secs(2);
/// Of a call's arguments.
const MOST_SHOWN: usize = 120;
const MOST_SHOWN_VERBOSE: usize = 1500;
/// Of what is thought, the end, in bytes.
const SHOWN_THOUGHTS: usize = 400;

impl Gateway {
    /// Does the work, and shows what grows meanwhile. When this returns nothing is being shown, so
    /// what is sent next comes last.
    pub(crate) async fn stream_while<T>(
        &self,
        message: &AcceptedMessage,
        live: &LiveReply,
        work: impl Future<Output = T>,
    ) -> T {
        let (account, place) = (&message.said().account, &message.said().place);
        let chat = self.outbox.chat(account);
        let chat = chat.filter(|chat| chat.capabilities().edits);
        let (Some(chat), Some(streaming)) = (chat, &self.settings.streaming) else {
            return work.await;
        };
        if self.outbox.is_held_up(account, place) {
            // What was written before arrives before.
            return work.await;
        }
        let over = CancellationToken::new();
        let work = async {
            let done = work.await;
            over.cancel();
            done
        };
        let showing = self.show(chat.as_ref(), message, live, streaming, &over);
        tokio::join!(work, showing).0
    }

    async fn show(
        &self,
        chat: &dyn Chat,
        message: &AcceptedMessage,
        live: &LiveReply,
        streaming: &StreamingSettings,
        over: &CancellationToken,
    ) {
        let mut draft = DraftMessage::new(
            chat,
            &message.said().place,
            message.to_quote(chat.capabilities().replies).cloned(),
            message.draft().cloned(),
            streaming.every,
        );
        loop {
            let begun = draft.message().is_some();
            let waited = async {
                tokio::select! {
                    () = live.changed.notified() => {}
                    () = live.a_call_takes_long(), if !begun => {}
                }
                // The pause after the news, not before: what is shown then is all that was said
                // until its end.
                sleep_until(draft.not_before()).await;
            };
            if over.run_until_cancelled(waited).await.is_none() {
                return;
            }
            let Some(text) = live.so_far(streaming, draft.message().is_some()) else {
                continue;
            };
            let late = async {
                over.cancelled().await;
                sleep(LAST_SHOWING).await;
            };
            tokio::select! {
                () = draft.show(&text) => {}
                () = late => return,
            }
            // Noted once, right after it is there: killed before this, it stays as a beginning that
            // nobody completes, and the answer comes below it.
            if let (Some(begun), None) = (draft.message(), message.draft())
                && let Err(error) = message.note_draft(&self.inbox, begun).await
            {
                tracing::warn!(row = message.row().0, %error, "a draft could not be noted");
            }
        }
    }
}

impl LiveReply {
    pub(crate) fn new(redactor: &Redactor, progress: ToolProgress) -> Self {
        Self {
            redactor: redactor.clone(),
            progress,
            page: Mutex::new(LivePage {
                settled: String::new(),
                stream: redactor.stream(),
                given: Vec::new(),
                doing: None,
                thoughts: redactor.stream(),
                thought: Vec::new(),
                plan: None,
                shown_alone_at: None,
                last_tool: None,
            }),
            changed: Notify::new(),
        }
    }

    /// What may be shown; nothing while it is too little to begin with.
    fn so_far(&self, streaming: &StreamingSettings, begun: bool) -> Option<OutgoingText> {
        let page = self.page();
        let whole = format!("{}{}", page.settled, whole_characters(&page.given));
        let whole = without_tags(&whole);
        let beside = page.beside();
        if whole.trim().is_empty() && beside.is_empty() {
            return None;
        }
        // A call that takes long is worth a message of its own.
        let is_long = page.shown_alone_at.is_some_and(|at| at <= Instant::now());
        if !begun && !is_long && whole.chars().count() < streaming.threshold {
            return None;
        }
        let text = format!("{}{beside}{}", whole.trim_end(), streaming.cursor);
        // Redacted once more, with what stands around it now: to redact twice changes nothing.
        Some(self.redactor.redact(text.trim_start()).into())
    }

    fn restart(&self, doing: Option<String>, forget: bool) {
        let mut page = self.page();
        self.end_thought(&mut page);
        if forget {
            page.stream = self.redactor.stream();
            page.given.clear();
        }
        page.shown_alone_at = doing
            .is_some()
            .then(|| Instant::now() + PATIENCE_WITH_A_CALL);
        page.doing = doing;
        drop(page);
        self.changed.notify_one();
    }

    fn end_thought(&self, page: &mut LivePage) {
        if !page.thought.is_empty() {
            page.thought.clear();
            page.thoughts = self.redactor.stream();
        }
    }

    /// Returns when a call has taken so long that whoever waits should see it; never without a call.
    async fn a_call_takes_long(&self) {
        let at = self.page().shown_alone_at;
        match at {
            Some(at) => sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    fn page(&self) -> MutexGuard<'_, LivePage> {
        self.page.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LivePage {
    /// What is done beside the answer.
    fn beside(&self) -> String {
        let line = |mark: &str, words: Option<&str>| {
            let words = words.unwrap_or_default().split_whitespace();
            let words = words.collect::<Vec<_>>().join(" ");
            match words.is_empty() {
                true => words,
                false => format!("\n\n{mark} {words}"),
            }
        };
        let thought = whole_characters(&self.thought);
        format!(
            "{}{}{}",
            line("☰", self.plan.as_deref()),
            line("💭", Some(thought)),
            line("⚙", self.doing.as_deref())
        )
    }

    /// What takes long is worth a message before anything is said.
    fn is_shown_soon(&mut self) {
        self.shown_alone_at
            .get_or_insert_with(|| Instant::now() + PATIENCE_WITH_A_CALL);
    }
}

/// All but the beginning of a character whose end is still to come.
fn whole_characters(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    }
}

impl TurnObserver for LiveReply {
    fn text(&self, piece: &str) {
        let mut page = self.page();
        let given = page.stream.push(piece.as_bytes()).into_inner();
        if given.is_empty() {
            return;
        }
        page.given.extend(given);
        self.end_thought(&mut page);
        page.plan = None;
        drop(page);
        self.changed.notify_one();
    }

    /// Whatever the setting for tools is: whoever asked for thoughts is shown them.
    fn thought(&self, piece: &str) {
        let mut page = self.page();
        let given = page.thoughts.push(piece.as_bytes()).into_inner();
        page.thought.extend(given);
        let excess = page.thought.len().saturating_sub(SHOWN_THOUGHTS);
        let is_inside = |byte: &u8| byte & 0xc0 == 0x80;
        let cut = page.thought[excess..]
            .iter()
            .take_while(|byte| is_inside(byte));
        let begin = excess + cut.count();
        page.thought.drain(..begin);
        page.is_shown_soon();
        drop(page);
        self.changed.notify_one();
    }

    fn plan(&self, words: &str) {
        let most = match self.progress {
            ToolProgress::Off => return,
            ToolProgress::New | ToolProgress::All => MOST_SHOWN,
            ToolProgress::Verbose => MOST_SHOWN_VERBOSE,
        };
        let line = words.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = self.redactor.redact(line).into_inner();
        let mut page = self.page();
        page.plan = Some(line.chars().take(most).collect());
        page.is_shown_soon();
        drop(page);
        self.changed.notify_one();
    }

    fn answered(&self) {
        let mut page = self.page();
        let stream = std::mem::replace(&mut page.stream, self.redactor.stream());
        let rest = stream.finish().into_inner();
        page.given.extend(rest);
        let given = std::mem::take(&mut page.given);
        let settled = String::from_utf8_lossy(&given);
        page.settled.push_str(settled.trim());
        page.settled.push_str("\n\n");
        drop(page);
        self.restart(None, true);
    }

    fn restarted(&self) {
        self.restart(None, true);
    }

    fn tool_started(&self, call: &ToolCall) {
        let most = match self.progress {
            ToolProgress::Off => return,
            ToolProgress::New => 0,
            ToolProgress::All => MOST_SHOWN,
            ToolProgress::Verbose => MOST_SHOWN_VERBOSE,
        };
        let before = self.page().last_tool.replace(call.name.clone());
        if self.progress == ToolProgress::New && before.as_ref() == Some(&call.name) {
            return;
        }
        let line = call
            .arguments
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        // Redacted whole, then cut: a cut may leave half a secret that no longer looks like one.
        let line = self.redactor.redact(line).into_inner();
        let shown: String = line.chars().take(most).collect();
        let doing = format!("{} {shown}", call.name).trim_end().to_owned();
        self.restart(Some(doing), false);
    }

    fn tool_ended(&self, _: &ToolCall, _: &ToolResult) {
        self.restart(None, true);
    }
}

#[cfg(test)]
mod tests {
    use hermetic_agent::CallId;
    use hermetic_redact::RedactorSettings;
    use hermetic_types::Secret;

    use super::*;

    const KEY: &str = "correct-horse-battery-staple";

    fn live() -> (LiveReply, StreamingSettings) {
        let redactor = Redactor::new([Secret::new(KEY)], RedactorSettings::default());
        let streaming = StreamingSettings {
            every: Duration::ZERO,
            threshold: 5,
            cursor: " ▉".to_owned(),
            progress: ToolProgress::All,
        };
        (LiveReply::new(&redactor, ToolProgress::All), streaming)
    }

    fn shown(live: &LiveReply, streaming: &StreamingSettings) -> String {
        let text = live.so_far(streaming, true);
        text.map(|text| text.as_str().to_owned())
            .unwrap_or_default()
    }

    #[test]
    fn a_secret_cut_anywhere_never_shows() {
        for cut in 1..KEY.len() {
            let (live, streaming) = live();
            live.text("The key is ");
            for piece in [&KEY[..cut], &KEY[cut..], " indeed, and that is all"] {
                live.text(piece);
                let shown = shown(&live, &streaming);
                assert!(!shown.contains(&KEY[..cut.max(4)]), "{cut}: {shown}");
                assert!(
                    !shown.contains(&KEY[cut..]) || KEY.len() - cut < 4,
                    "{cut}: {shown}"
                );
            }
            assert!(shown(&live, &streaming).contains("[redacted] indeed"));
        }
    }

    #[test]
    fn a_short_beginning_is_not_shown_and_a_call_is() {
        let (live, streaming) = live();
        live.text("Hm");
        assert!(live.so_far(&streaming, false).is_none());
        live.text(", let me look at that.");
        assert!(live.so_far(&streaming, false).is_some());
        live.tool_started(&ToolCall {
            id: CallId::new("1"),
            name: "terminal".to_owned(),
            arguments: format!("{{\"command\": \"echo {KEY}\"}}"),
        });
        let text = shown(&live, &streaming);
        assert!(
            text.contains("⚙ terminal {\"command\": \"echo [redacted]"),
            "{text}"
        );
        live.tool_ended(
            &ToolCall {
                id: CallId::new("1"),
                name: "terminal".to_owned(),
                arguments: String::new(),
            },
            &ToolResult::new(""),
        );
        assert_eq!(shown(&live, &streaming), "", "a new answer begins");
    }

    #[tokio::test(start_paused = true)]
    async fn tools_are_shown_as_the_setting_has_it() {
        let redactor = Redactor::new([Secret::new(KEY)], RedactorSettings::default());
        let (_, streaming) = live();
        let call = |name: &str| ToolCall {
            id: CallId::new("1"),
            name: name.to_owned(),
            arguments: format!("{{\"command\": \"{}\"}}", "x".repeat(2000)),
        };
        for (progress, first, again) in [
            (ToolProgress::Off, 0..1, 0..1),
            (ToolProgress::New, 8..20, 0..1),
            (ToolProgress::All, 100..200, 100..200),
            (ToolProgress::Verbose, 1400..1600, 1400..1600),
        ] {
            let live = LiveReply::new(&redactor, progress);
            live.tool_started(&call("terminal"));
            assert!(
                live.so_far(&streaming, false).is_none(),
                "it may end in a moment"
            );
            tokio::time::advance(PATIENCE_WITH_A_CALL).await;
            let text = live.so_far(&streaming, false);
            let length = text.map_or(0, |text| text.as_str().chars().count());
            assert!(first.contains(&length), "{progress:?}: {length}");
            live.tool_ended(&call("terminal"), &ToolResult::new(""));
            live.tool_started(&call("terminal"));
            let length = shown(&live, &streaming).chars().count();
            assert!(again.contains(&length), "{progress:?} again: {length}");
            live.tool_ended(&call("terminal"), &ToolResult::new(""));
            live.tool_started(&call("read_file"));
            let is_shown = shown(&live, &streaming).contains("read_file");
            assert_eq!(is_shown, progress != ToolProgress::Off, "{progress:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn thoughts_and_plans_are_shown_beside_the_answer_and_end_with_what_follows() {
        let (live, streaming) = live();
        live.thought("hm, let me look at that. ");
        assert!(live.so_far(&streaming, false).is_none(), "it may end soon");
        tokio::time::advance(PATIENCE_WITH_A_CALL).await;
        assert!(live.so_far(&streaming, false).is_some());
        // The end of it, and no half of a secret at the cut.
        live.thought(&format!("{KEY}{}ü the end. ", " word".repeat(76)));
        let text = shown(&live, &streaming);
        assert!(text.contains("ü the end"), "{text}");
        assert!(!text.contains("staple") && text.len() < 500, "{text}");
        live.plan("1 of 3 done: look");
        let text = shown(&live, &streaming);
        assert!(
            text.contains("☰ 1 of 3 done: look") && text.contains("💭"),
            "{text}"
        );
        live.text("It is like this, as far as I can see. ");
        let text = shown(&live, &streaming);
        assert!(!text.contains('☰') && !text.contains('💭'), "{text}");
    }

    #[test]
    fn thoughts_are_for_who_asked_and_plans_for_who_wants_progress() {
        let redactor = Redactor::new([], RedactorSettings::default());
        let (_, streaming) = live();
        let live = LiveReply::new(&redactor, ToolProgress::Off);
        live.plan("0 of 1 done: look");
        assert_eq!(shown(&live, &streaming), "");
        live.thought("let me see what this is about, once more. ");
        assert!(shown(&live, &streaming).contains("💭 let me see"));
    }

    #[test]
    fn an_answer_that_is_whole_stays_while_the_next_one_grows() {
        let (live, streaming) = live();
        live.text("The first answer.");
        live.answered();
        live.text("Let me look.");
        let call = ToolCall {
            id: CallId::new("1"),
            name: "terminal".to_owned(),
            arguments: String::new(),
        };
        live.tool_started(&call);
        live.tool_ended(&call, &ToolResult::new(""));
        live.text("And the second one, which is long enough to be given out.");
        let text = shown(&live, &streaming);
        let (first, second) = text.split_once('\n').unwrap();
        assert_eq!(first, "The first answer.");
        assert!(second.trim().starts_with("And the second"), "{text}");
    }

    #[test]
    fn half_a_character_waits_for_the_other_half() {
        let (live, streaming) = live();
        live.text("Grüße aus Köln, and more €");
        let text = shown(&live, &streaming);
        assert!(text.starts_with("Grüße aus Köln"), "{text}");
    }
}
