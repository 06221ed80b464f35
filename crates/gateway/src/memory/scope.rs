//! Whose memories a message may use.

use std::collections::BTreeSet;

use hermetic_access::{PairedRole, SenderRole};
use hermetic_memory::MemoryOwner;
use hermetic_store::{ReplaceOutcome, SearchScope, StoreError};
use hermetic_types::{ChatKind, Platform};

use crate::message::AcceptedMessage;
use crate::{Gateway, JobDelivery};

/// Who is the one person that Hermes' files are about. Whoever else may write, and may approve, is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnerRule {
    /// These, as `telegram:4711`: one person on several platforms.
    Named(BTreeSet<String>),
    /// The configuration names nobody who may approve: the first who is seen as the only paired operator, and
    /// from then on nobody else.
    OnlyPaired,
    /// Several may approve, and it is not said who of them it is.
    Nobody,
}

/// Whose memories these are, and where they look back.
#[derive(Clone, Debug)]
pub(crate) struct MemoryScope {
    pub(crate) owner: MemoryOwner,
    /// Whoever speaks, where that is in private.
    pub(crate) person: Option<String>,
    pub(crate) search: SearchScope,
    pub(crate) is_guest: bool,
}

/// The document that names the one who was found by [`OwnerRule::OnlyPaired`].
const DOCUMENT: &str = "memory-owner";

impl Gateway {
    pub(crate) async fn memory_scope(
        &self,
        message: &AcceptedMessage,
    ) -> Result<MemoryScope, StoreError> {
        let said = message.said();
        let conversation = message.conversation().clone();
        let is_guest = message.admitted().role() == SenderRole::Guest;
        // What a job says in a home channel is for others, so it is told nothing that is its person's.
        let is_for_others = match self.job_of(message).await? {
            Some(job) => !JobDelivery::read(&job.deliver).is_ok_and(JobDelivery::is_private),
            None => message.is_scheduled(),
        };
        if said.place.kind != ChatKind::Dm || is_for_others {
            return Ok(MemoryScope {
                owner: MemoryOwner::Group(conversation.clone()),
                person: None,
                search: SearchScope {
                    conversation,
                    people: Vec::new(),
                },
                is_guest,
            });
        }
        let person = person(said.platform(), said.sender.id.as_str());
        let owners = self.owners(message, &person).await?;
        let (owner, people) = match owners.contains(&person) {
            true => (MemoryOwner::Owner, owners.into_iter().collect()),
            false => (MemoryOwner::Person(person.clone()), vec![person.clone()]),
        };
        Ok(MemoryScope {
            owner,
            person: Some(person),
            search: SearchScope {
                conversation,
                people,
            },
            is_guest,
        })
    }

    async fn owners(
        &self,
        message: &AcceptedMessage,
        person: &str,
    ) -> Result<BTreeSet<String>, StoreError> {
        match &self.memory.owner {
            OwnerRule::Named(named) => return Ok(named.clone()),
            OwnerRule::Nobody => return Ok(BTreeSet::new()),
            OwnerRule::OnlyPaired => {}
        }
        let documents = self.store.documents();
        if let Some(bound) = documents.load(DOCUMENT).await? {
            return Ok([bound.body].into());
        }
        let is_operator = message.admitted().role() == SenderRole::Operator;
        if !is_operator || self.only_paired_operator().await.as_deref() != Some(person) {
            return Ok(BTreeSet::new());
        }
        // Whoever becomes the only operator after this one was revoked is somebody else.
        // Version 0 stands for "there is none": of two first messages at once, one is bound and the
        // other is outrun.
        match documents.replace(DOCUMENT, person, 0).await {
            Ok(ReplaceOutcome::Yes) => Ok([person.to_owned()].into()),
            Ok(ReplaceOutcome::Outrun) => Ok(BTreeSet::new()),
            // Without room the message is answered all the same, and nobody's memories are shown.
            Err(error) => {
                tracing::warn!(%error, "whose the memories are could not be written down");
                Ok(BTreeSet::new())
            }
        }
    }

    /// The one person who was let in by a code as an operator; nobody where there are several, or where it
    /// cannot be told.
    async fn only_paired_operator(&self) -> Option<String> {
        let mut found = BTreeSet::new();
        for platform in Platform::ALL {
            let standing = self.access.pairing().standing(platform, self.now()).await;
            let standing = standing.inspect_err(|error| {
                tracing::warn!(%error, %platform, "who is paired could not be looked up");
            });
            let approved = standing.ok()?.approved.into_iter();
            let operators = approved.filter(|user| user.role == PairedRole::Operator);
            found.extend(operators.map(|user| person_of(platform, &user)));
        }
        match found.len() {
            1 => found.pop_first(),
            _ => None,
        }
    }
}

fn person_of(platform: Platform, user: &hermetic_access::PairedUser) -> String {
    person(platform, user.user.as_str())
}

fn person(platform: Platform, user: &str) -> String {
    format!("{}:{user}", platform.name())
}
