//! What a sandbox says of itself, in tags that only who has the token can write.
//!
//! A tag's value is short and plain, so what may be neither is encoded and cut into pieces, one tag
//! each.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hermetic_sandbox::{FoundState, MakerState, SandboxLifeline, SandboxPersistence, SandboxSpec};
use hermetic_types::{ConversationKey, InstallationId, SandboxId};

use crate::wire::SandboxTag;

const INSTALLATION: &str = "hermetic-installation";
const SANDBOX: &str = "hermetic-sandbox";
const CONVERSATION: &str = "hermetic-conversation";
const PERSISTENCE: &str = "hermetic-persistence";
const LIFELINE: &str = "hermetic-lifeline";
/// Which of possibly several starts of this sandbox it is.
const START: &str = "hermetic-start";
/// The process that was making it, so that others can tell a create under way from a dead one.
const MAKER: &str = "hermetic-maker";
/// Set when it was made.
const READY: &str = "hermetic-ready";

const YES: &str = "yes";

/// Modal takes 63 characters.
const PIECE: usize = 60;
/// 720 bytes before they are encoded.
const MOST_PIECES: usize = 16;

/// The sandbox's name: Modal lets one live at a time.
pub(crate) fn name(id: &SandboxId) -> String {
    format!("hermetic-{id}")
}

pub(crate) fn of(spec: &SandboxSpec, start: &str) -> Vec<SandboxTag> {
    let mut tags = vec![
        tag(INSTALLATION, spec.installation.as_str()),
        tag(SANDBOX, spec.id.as_str()),
        tag(START, start),
    ];
    tags.extend(spec.persistence.label().map(|kept| tag(PERSISTENCE, kept)));
    tags.extend(spec.lifeline.label().map(|whose| tag(LIFELINE, whose)));
    tags.extend(pieces(CONVERSATION, spec.conversation.as_str()));
    if let Some(maker) = MakerState::label() {
        tags.extend(pieces(MAKER, &maker));
    }
    tags
}

/// The same, of one that was made.
pub(crate) fn ready(mut tags: Vec<SandboxTag>) -> Vec<SandboxTag> {
    tags.push(tag(READY, YES));
    tags
}

/// Tags by which the service leaves out what is not this installation's.
pub(crate) fn filter(installation: &InstallationId, id: Option<&SandboxId>) -> Vec<SandboxTag> {
    let mut tags = vec![tag(INSTALLATION, installation.as_str())];
    tags.extend(id.map(|id| tag(SANDBOX, id.as_str())));
    tags
}

/// The tags of a sandbox that is ours.
#[derive(Clone, Debug)]
pub(crate) struct SandboxTags {
    pub(crate) id: SandboxId,
    pub(crate) conversation: Option<ConversationKey>,
    pub(crate) persistence: SandboxPersistence,
    pub(crate) lifeline: SandboxLifeline,
    pub(crate) start: String,
    pub(crate) state: FoundState,
}

impl SandboxTags {
    /// Nothing for a sandbox of another installation, or of nobody we know, whatever was asked for.
    pub(crate) fn read(tags: &[SandboxTag], installation: &InstallationId) -> Option<Self> {
        let tags: BTreeMap<&str, &str> = tags
            .iter()
            .map(|tag| (tag.tag_name.as_str(), tag.tag_value.as_str()))
            .collect();
        if *tags.get(INSTALLATION)? != installation.as_str() {
            return None;
        }
        let said = |name: &str| tags.get(name).copied();
        let maker = MakerState::of_label(joined(MAKER, &tags).as_deref());
        let lifeline = SandboxLifeline::of_label(said(LIFELINE));
        Some(Self {
            id: tags.get(SANDBOX)?.parse().ok()?,
            conversation: joined(CONVERSATION, &tags).map(ConversationKey::new),
            persistence: SandboxPersistence::of_label(said(PERSISTENCE)),
            lifeline,
            start: said(START).unwrap_or_default().to_owned(),
            state: match (said(READY) == Some(YES), maker, lifeline) {
                // It would end by itself when its leash is up, a minute later and on somebody's bill.
                (true, MakerState::Gone, SandboxLifeline::Creator) => FoundState::Broken,
                (true, ..) => FoundState::Running,
                (false, MakerState::Alive, _) => FoundState::Busy,
                (false, ..) => FoundState::Broken,
            },
        })
    }
}

fn tag(name: &str, value: &str) -> SandboxTag {
    SandboxTag {
        tag_name: name.to_owned(),
        tag_value: value.to_owned(),
    }
}

/// Nothing where it is too long for tags.
fn pieces(name: &str, text: &str) -> Vec<SandboxTag> {
    let encoded = URL_SAFE_NO_PAD.encode(text);
    let pieces = encoded.as_bytes().chunks(PIECE);
    // All or nothing: a name of which the end is missing would be another's.
    if pieces.len() > MOST_PIECES {
        return Vec::new();
    }
    pieces
        .enumerate()
        .map(|(n, piece)| tag(&format!("{name}.{n}"), &String::from_utf8_lossy(piece)))
        .collect()
}

fn joined(name: &str, tags: &BTreeMap<&str, &str>) -> Option<String> {
    let encoded: String = (0..MOST_PIECES)
        .map_while(|n| tags.get(format!("{name}.{n}").as_str()).copied())
        .collect();
    if encoded.is_empty() {
        return None;
    }
    String::from_utf8(URL_SAFE_NO_PAD.decode(encoded).ok()?).ok()
}

#[cfg(test)]
mod tests {

    use super::*;

    const CREATOR: &str = "creator";

    #[test]
    fn any_conversation_fits_into_tags_and_comes_back() {
        for text in [
            "a",
            "agent:main:telegram:group:-100123:42",
            &"größe/日本 ".repeat(20),
        ] {
            let tags = pieces(CONVERSATION, text);
            let fits = |text: &str| {
                let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
                (1..=63).contains(&text.len()) && text.chars().all(plain)
            };
            assert!(
                tags.iter()
                    .all(|tag| fits(&tag.tag_name) && fits(&tag.tag_value))
            );
            let tags = tags.iter().map(|tag| (&*tag.tag_name, &*tag.tag_value));
            assert_eq!(joined(CONVERSATION, &tags.collect()).as_deref(), Some(text));
        }
        assert!(pieces(CONVERSATION, &"x".repeat(10_000)).is_empty());
    }

    #[test]
    fn strangers_are_not_ours() {
        let installation = InstallationId::random();
        let id = SandboxId::random();
        let of = |installation: &InstallationId| filter(installation, Some(&id));
        assert!(SandboxTags::read(&of(&installation), &installation).is_some());
        assert!(SandboxTags::read(&of(&InstallationId::random()), &installation).is_none());
        assert!(SandboxTags::read(&[], &installation).is_none());
        assert!(SandboxTags::read(&filter(&installation, None), &installation).is_none());
    }

    #[test]
    fn a_tied_one_whose_maker_is_gone_is_the_rest_of_one() {
        let own = MakerState::label().unwrap();
        let mut gone: serde_json::Value = serde_json::from_str(&own).unwrap();
        gone["start"] = 1.into();
        let mut elsewhere = gone.clone();
        elsewhere["boot"] = "another machine's".into();
        let gone = gone.to_string();
        let installation = InstallationId::random();
        let state = |maker: Option<&str>, lifeline: &str| {
            let mut tags = filter(&installation, Some(&SandboxId::random()));
            tags.extend([tag(READY, YES), tag(LIFELINE, lifeline)]);
            tags.extend(maker.into_iter().flat_map(|maker| pieces(MAKER, maker)));
            SandboxTags::read(&tags, &installation).unwrap().state
        };
        assert_eq!(state(Some(&gone), CREATOR), FoundState::Broken);
        assert_eq!(state(Some(&own), CREATOR), FoundState::Running);
        // Nobody knows, or it is to outlive him.
        assert_eq!(
            state(Some(&elsewhere.to_string()), CREATOR),
            FoundState::Running
        );
        assert_eq!(state(None, CREATOR), FoundState::Running);
        assert_eq!(state(Some(&gone), "ledger"), FoundState::Running);
    }
}
