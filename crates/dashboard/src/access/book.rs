//! Who is signed in. Kept in the store by the hashes of their cookies, so that a restart signs nobody out
//! and whoever reads the store gets in nowhere.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hermetic_store::{DocumentRows, ReplaceOutcome, StoreError};
use hermetic_types::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use super::EnterRefused;
use super::key::{AccessKey, digest, mac, random_text};
use super::viewer::{DashboardRole, Viewer};

/// The sessions there are.
#[derive(Debug)]
pub(crate) struct SessionBook {
    documents: DocumentRows,
    /// As it was read or written last; nothing before the first look.
    known: Mutex<Option<(SessionDocument, u64)>>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct SessionDocument {
    sessions: Vec<StoredSession>,
    /// Links that were used, until the time at which they would be void anyway.
    used_links: Vec<(String, Timestamp)>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct StoredSession {
    /// Of the cookie.
    hash: String,
    who: String,
    role: DashboardRole,
    until: Timestamp,
    /// Under which key it began: with another one it is over.
    key: String,
}

/// One of them at most for each browser of a few people.
const MOST_SESSIONS: usize = 64;

/// A working day, and one has to sign in again.
pub(crate) const SESSION_LENGTH: Duration = Duration::from_secs(12 * 3600);

const DOCUMENT: &str = "dashboard/sessions";

/// Attempts to write it; nobody but this gateway does.
const MOST_TRIES: usize = 8;

impl SessionBook {
    pub(crate) fn new(documents: DocumentRows) -> Self {
        Self {
            documents,
            known: Mutex::default(),
        }
    }

    /// Begins a session and gives back its cookie. Nothing if `once` was used before: it is used up, on
    /// the disk, before anybody is let in by it.
    pub(crate) async fn open(
        &self,
        key: &AccessKey,
        viewer: Viewer,
        once: Option<(&str, Timestamp)>,
        now: Timestamp,
    ) -> Result<Option<(String, Viewer)>, EnterRefused> {
        let cookie = random_text()?;
        let session = StoredSession {
            hash: hash(&cookie),
            who: viewer.who.clone(),
            role: viewer.role,
            until: now.plus(SESSION_LENGTH),
            key: key.fingerprint(),
        };
        let opened = self
            .change(|document| {
                document.used_links.retain(|(_, until)| *until > now);
                document.sessions.retain(|old| old.until > now);
                if let Some((nonce, until)) = once {
                    if document.used_links.iter().any(|(used, _)| used == nonce) {
                        return false;
                    }
                    document.used_links.push((nonce.to_owned(), until));
                }
                // The oldest gives way.
                while document.sessions.len() >= MOST_SESSIONS {
                    document.sessions.remove(0);
                }
                document.sessions.push(session.clone());
                true
            })
            .await?;
        let csrf = Some(csrf_of(&cookie));
        Ok(opened.then_some((cookie, Viewer { csrf, ..viewer })))
    }

    /// Whether somebody came in by this link already.
    pub(crate) async fn is_used(&self, nonce: &str) -> Result<bool, StoreError> {
        let mut known = self.known.lock().await;
        // Read anew, as below.
        *known = None;
        let (document, _) = self.look(&mut known).await?;
        Ok(document.used_links.iter().any(|(used, _)| used == nonce))
    }

    /// Whose cookie this is.
    pub(crate) async fn find(
        &self,
        key: &AccessKey,
        cookie: &str,
        now: Timestamp,
    ) -> Result<Option<Viewer>, StoreError> {
        let mut known = self.known.lock().await;
        // Read anew each time: a dashboard that is a process of its own ends sessions too.
        *known = None;
        let (document, _) = self.look(&mut known).await?;
        let (hash, key) = (hash(cookie), key.fingerprint());
        let found = document
            .sessions
            .iter()
            .find(|session| session.hash == hash && session.key == key && session.until > now);
        Ok(found.map(|session| Viewer {
            who: session.who.clone(),
            role: session.role,
            csrf: Some(csrf_of(cookie)),
        }))
    }

    /// Ends a session.
    pub(crate) async fn close(&self, cookie: &str) -> Result<(), StoreError> {
        let hash = hash(cookie);
        self.change(|document| {
            document.sessions.retain(|session| session.hash != hash);
            true
        })
        .await
        .map(drop)
    }

    /// Changes the document unless `change` says no.
    async fn change(
        &self,
        mut change: impl FnMut(&mut SessionDocument) -> bool,
    ) -> Result<bool, StoreError> {
        let mut known = self.known.lock().await;
        for _ in 0..MOST_TRIES {
            let (mut document, version) = self.look(&mut known).await?.clone();
            if !change(&mut document) {
                return Ok(false);
            }
            // Plain data of strings and numbers always serialises.
            let body = serde_json::to_string(&document).unwrap_or_default();
            match self.documents.replace(DOCUMENT, &body, version).await? {
                ReplaceOutcome::Yes => {
                    *known = Some((document, version + 1));
                    return Ok(true);
                }
                ReplaceOutcome::Outrun => *known = None,
            }
        }
        Ok(false)
    }

    async fn look<'a>(
        &self,
        known: &'a mut Option<(SessionDocument, u64)>,
    ) -> Result<&'a (SessionDocument, u64), StoreError> {
        if known.is_none() {
            let found = self.documents.load(DOCUMENT).await?;
            let read = found.map_or_else(Default::default, |found| {
                // What cannot be read lets nobody in.
                let document = serde_json::from_str(&found.body).unwrap_or_default();
                (document, found.version)
            });
            *known = Some(read);
        }
        Ok(known.get_or_insert_default())
    }
}

fn hash(cookie: &str) -> String {
    URL_SAFE_NO_PAD.encode(digest(cookie))
}

/// Follows from the cookie, which no other page can read.
fn csrf_of(cookie: &str) -> String {
    URL_SAFE_NO_PAD.encode(mac(cookie.as_bytes(), "csrf"))
}

#[cfg(test)]
mod tests {
    use hermetic_store::Store;
    use hermetic_types::SystemClock;

    use super::*;

    #[tokio::test]
    async fn a_session_outlives_a_restart_and_ends_by_time_key_and_number() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        let book = async || {
            let store = Store::open(&path, SystemClock::shared()).await.unwrap();
            SessionBook::new(store.documents())
        };
        let key = AccessKey::load_or_create(folder.path()).unwrap();
        let now = Timestamp::from_seconds(1000);
        let ada = Viewer::new("dashboard:ada".to_owned(), DashboardRole::Operator);
        let first = book().await;
        let once = Some(("nonce", now.plus(Duration::from_secs(60))));
        let opened = first.open(&key, ada.clone(), once, now).await.unwrap();
        let (cookie, viewer) = opened.unwrap();
        assert!(viewer.csrf.is_some());
        assert!(
            first
                .open(&key, ada.clone(), once, now)
                .await
                .unwrap()
                .is_none()
        );
        let second = book().await;
        assert!(
            second
                .open(&key, ada.clone(), once, now)
                .await
                .unwrap()
                .is_none(),
            "used before the restart"
        );
        let found = second.find(&key, &cookie, now).await.unwrap();
        assert_eq!(found, Some(viewer));
        let over = now.plus(SESSION_LENGTH);
        assert_eq!(second.find(&key, &cookie, over).await.unwrap(), None);
        assert_eq!(second.find(&key, "guess", now).await.unwrap(), None);
        for _ in 0..MOST_SESSIONS {
            second
                .open(&key, ada.clone(), None, now)
                .await
                .unwrap()
                .unwrap();
        }
        assert_eq!(second.find(&key, &cookie, now).await.unwrap(), None);
        let (last, _) = second.open(&key, ada, None, now).await.unwrap().unwrap();
        assert!(second.find(&key, &last, now).await.unwrap().is_some());
        let other = AccessKey::replace(folder.path()).unwrap();
        assert_eq!(second.find(&other, &last, now).await.unwrap(), None);
        second.close(&last).await.unwrap();
        assert_eq!(second.find(&key, &last, now).await.unwrap(), None);
    }
}
