//! The seam itself.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{self, BoxFuture};
use futures::stream::{self, BoxStream, StreamExt};
use hermetic_chat::{
    AttachmentStream, ButtonLimits, Capabilities, Chat, ChatReply, ChatState, ChoiceShape,
    DownloadError, MissedMessages, OutgoingFile, OutgoingText, ReceiptWaiter, ReceiveError,
    ReceivedEvent, Redelivery, ReplyButton, ReplyRule, ReportedChanges, SendError, TextLimit,
    UnaskedMessages,
};
use hermetic_types::{AccountId, Attachment, ButtonPress, ChatPlace, MessageId, UserId};
use tokio_util::sync::CancellationToken;

use super::faults::Left;
use super::record::{Edit, Notice, SentFile, SentMessage};
use super::speech::private_place;
use super::{FakeChat, Operation, UpdateNumber};

/// Everything that any platform can do, and messages of any length: a story that is about a limit has
/// the platform's own tests.
const CAPABILITIES: Capabilities = Capabilities {
    text: TextLimit::utf16(1 << 20),
    edits: true,
    reports_changes: ReportedChanges::ALL,
    buttons: Some(ButtonLimits {
        most: 100,
        data_bytes: ReplyButton::DATA_BYTES,
        shown: ChoiceShape::Buttons,
    }),
    files_in: Some(1 << 30),
    files_out: Some(1 << 30),
    threads: true,
    typing: Some(Duration::from_secs(5)),
    redelivery: Redelivery::Always,
    missed: MissedMessages::Repeated,
    send_keys: None,
    ordered_messages: true,
    replies: ReplyRule::Free,
    unasked: UnaskedMessages::AnyTime,
};

impl Chat for FakeChat {
    fn account(&self) -> &AccountId {
        &self.0.account
    }

    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    fn is_portable(&self) -> bool {
        true
    }

    fn state(&self) -> ChatState {
        ChatState::Connected
    }

    fn receive(
        &self,
        stop: CancellationToken,
    ) -> BoxStream<'_, Result<ReceivedEvent, ReceiveError>> {
        self.0.events.begin();
        stream::unfold(stop, move |stop| async move {
            let heard = self.0.events.next();
            let heard = match stop.run_until_cancelled(heard).await {
                Some(heard) => heard,
                None => self.0.events.next_at_stop().await?,
            };
            Some((Ok(self.handed_over(heard)), stop))
        })
        .boxed()
    }

    fn send<'a>(
        &'a self,
        place: &'a ChatPlace,
        reply: &'a ChatReply,
    ) -> BoxFuture<'a, Result<Vec<MessageId>, SendError>> {
        let sent = move |id: MessageId| SentMessage {
            id,
            place: place.clone(),
            markdown: reply.text.as_str().to_owned(),
            reply_to: reply.reply_to.clone(),
            buttons: reply.buttons.clone(),
        };
        self.carry_out(Operation::Send, move || {
            let id = self.0.next_message();
            self.change(|record| record.messages.push(sent(id.clone())));
            vec![id]
        })
        .boxed()
    }

    fn edit<'a>(
        &'a self,
        place: &'a ChatPlace,
        message: &'a MessageId,
        text: &'a OutgoingText,
        buttons: &'a [Vec<ReplyButton>],
    ) -> BoxFuture<'a, Result<(), SendError>> {
        let edit = move || Edit {
            message: message.clone(),
            place: place.clone(),
            markdown: text.as_str().to_owned(),
            buttons: buttons.to_vec(),
        };
        self.carry_out(Operation::Edit, move || {
            self.change(|record| record.edits.push(edit()));
        })
        .boxed()
    }

    fn typing<'a>(&'a self, place: &'a ChatPlace) -> BoxFuture<'a, Result<(), SendError>> {
        self.carry_out(Operation::Typing, move || {
            self.change(|record| record.typing.push(place.clone()));
        })
        .boxed()
    }

    fn acknowledge_press<'a>(
        &'a self,
        press: &'a ButtonPress,
    ) -> BoxFuture<'a, Result<(), SendError>> {
        let told = move || Notice {
            query: press.query.clone(),
            text: None,
        };
        self.carry_out(Operation::AnswerPress, move || {
            self.change(|record| record.notices.push(told()));
        })
        .boxed()
    }

    fn private_place<'a>(
        &'a self,
        user: &'a UserId,
    ) -> BoxFuture<'a, Result<ChatPlace, SendError>> {
        future::ready(Ok(private_place(user))).boxed()
    }

    fn answer_press<'a>(
        &'a self,
        press: &'a ButtonPress,
        notice: &'a OutgoingText,
    ) -> BoxFuture<'a, Result<(), SendError>> {
        let told = move || Notice {
            query: press.query.clone(),
            text: Some(notice.as_str().to_owned()),
        };
        self.carry_out(Operation::AnswerPress, move || {
            self.change(|record| record.notices.push(told()));
        })
        .boxed()
    }

    fn send_file<'a>(
        &'a self,
        place: &'a ChatPlace,
        file: &'a OutgoingFile,
    ) -> BoxFuture<'a, Result<MessageId, SendError>> {
        let sent = move |id: MessageId| SentFile {
            id,
            place: place.clone(),
            name: file.name.clone(),
            bytes: file.bytes.clone(),
            caption: file.caption.as_ref().map(|text| text.as_str().to_owned()),
        };
        self.carry_out(Operation::SendFile, move || {
            let id = self.0.next_message();
            self.change(|record| record.files.push(sent(id.clone())));
            id
        })
        .boxed()
    }

    fn download<'a>(
        &'a self,
        attachment: &'a Attachment,
        limit: u64,
    ) -> BoxFuture<'a, Result<AttachmentStream, DownloadError>> {
        async move {
            match self.0.faults.meet(Operation::Download).await {
                Left::Nothing => {}
                Left::Before(failure) | Left::After(failure) => {
                    return Err(DownloadError::Failed(Box::new(failure)));
                }
            }
            let bytes = self.upload(&attachment.id);
            let bytes = bytes.ok_or_else(|| DownloadError::Refused {
                description: "no such file".to_owned(),
            })?;
            if bytes.len() as u64 > limit {
                return Err(DownloadError::TooLarge { limit });
            }
            Ok(stream::iter([Ok(bytes)]).boxed())
        }
        .boxed()
    }
}

impl FakeChat {
    fn handed_over(
        &self,
        (received, number, counterfoil): (ReceivedEvent, UpdateNumber, ReceiptWaiter),
    ) -> ReceivedEvent {
        let shared = Arc::clone(&self.0);
        // It ends with the receipt, which is signed or dropped.
        tokio::spawn(async move { shared.events.settle(number, counterfoil).await });
        received
    }

    /// As ordered: not at all, or with a failure before or after it happened.
    async fn carry_out<T>(
        &self,
        operation: Operation,
        act: impl FnOnce() -> T,
    ) -> Result<T, SendError> {
        match self.0.faults.meet(operation).await {
            Left::Nothing => Ok(act()),
            Left::Before(failure) => Err(failure.into()),
            Left::After(failure) => {
                act();
                Err(failure.into())
            }
        }
    }
}
