//! Messages sent through a gateway that may lose its power, and what became of each.
//!
//! The platform is the witness: a message counts as acknowledged when the gateway confirmed its
//! update, because from then on no platform sends it again. Whoever cuts the power reads here
//! whether the gateway kept its word.

mod letters;
mod model;

use std::collections::{BTreeMap, BTreeSet};

use crate::model::ScriptedServer;
use crate::telegram::TelegramServer;

pub use letters::{Kind, Letter, Sent};

/// What a reply begins with when it may have arrived before.
const DUPLICATE_MARK: &str = "Possible duplicate";
/// What is said about a command of which nobody knows whether it ran.
const DOUBT: &str = "may or may not have happened";

/// A platform and a model, with people who write to the bot.
#[derive(Debug)]
pub struct Traffic {
    telegram: TelegramServer,
    model: ScriptedServer,
    letters: Vec<Letter>,
    /// Letters before this one were reckoned up already.
    reckoned: usize,
    /// Repetitions without a mark that were told already.
    repetitions_told: usize,
    marks_told: usize,
}

/// One stretch of traffic, reckoned up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub sent: usize,
    pub acknowledged: usize,
    pub answered: usize,
    /// A reply came, but it says that something failed or is not known.
    pub reported: usize,
    /// Acknowledged, and nobody was ever told anything.
    pub lost: Vec<String>,
    /// Not acknowledged and not answered: the platform still has these.
    pub waiting: usize,
    /// The same answer twice, and the later one does not say so.
    pub repeated_unmarked: usize,
    pub repeated_marked: usize,
    /// Answered, and called doubtful all the same.
    pub doubted_though_answered: Vec<String>,
}

impl Traffic {
    pub async fn start() -> std::io::Result<Self> {
        Ok(Self {
            telegram: TelegramServer::start().await?,
            model: model::start().await?,
            letters: Vec::new(),
            reckoned: 0,
            repetitions_told: 0,
            marks_told: 0,
        })
    }

    pub fn telegram(&self) -> &TelegramServer {
        &self.telegram
    }

    pub fn model_url(&self) -> String {
        self.model.base_url()
    }

    /// What the bot has sent so far, oldest first.
    pub fn replies(&self) -> Vec<Sent> {
        letters::sent(&self.telegram)
    }

    /// Every person whose letters are few enough writes one more. A shell command waits for the
    /// one before it, so that what comes after it is about it.
    pub fn write(&mut self, talkers: i64, shells: i64, most_open: usize) {
        let replies = self.replies();
        let messages = replies.iter().filter(|sent| sent.new).count();
        for user in 1..=talkers + shells {
            let (kind, most) = if user <= talkers {
                (Kind::Talk, most_open)
            } else {
                (Kind::Shell, 1)
            };
            let open = self.open(&replies).filter(|letter| letter.user == user);
            if open.count() < most {
                let letter = Letter::new(self.letters.len(), user, kind, messages);
                let update = self.telegram.says(user, &letter.text());
                self.letters.push(letter.with_update(update));
            }
        }
    }

    /// How many of the letters that are not reckoned up were acknowledged, and how many have a reply.
    pub fn progress(&self) -> (usize, usize) {
        let replies = self.replies();
        let waiting = self.unconfirmed();
        let letters = &self.letters[self.reckoned..];
        let acknowledged = letters
            .iter()
            .filter(|letter| !waiting.contains(&letter.update));
        let open = self.open(&replies).count();
        (acknowledged.count(), letters.len() - open)
    }

    /// Whether every letter was answered or reported on.
    pub fn told(&self) -> bool {
        self.open(&self.replies()).next().is_none()
    }

    /// Reckons up what was sent since the last time.
    pub fn reckon(&mut self) -> Tally {
        let replies = self.replies();
        let mut tally = tally(
            &self.letters[self.reckoned..],
            &self.unconfirmed(),
            &replies,
        );
        self.reckoned = self.letters.len();
        // A late repetition may be of a letter that was reckoned up long ago.
        let (unmarked, marked) = repetitions(&self.letters, &replies);
        tally.repeated_unmarked = unmarked - self.repetitions_told;
        tally.repeated_marked = marked - self.marks_told;
        (self.repetitions_told, self.marks_told) = (unmarked, marked);
        tally
    }

    /// Reckons up everything that was ever sent: what came too late for its own stretch counts here.
    pub fn sum(&self) -> Tally {
        let replies = self.replies();
        let mut tally = tally(&self.letters, &self.unconfirmed(), &replies);
        (tally.repeated_unmarked, tally.repeated_marked) = repetitions(&self.letters, &replies);
        tally
    }

    fn unconfirmed(&self) -> BTreeSet<i64> {
        self.telegram.unconfirmed().into_iter().collect()
    }

    /// Letters that nobody was told anything about.
    fn open<'a>(&'a self, replies: &'a [Sent]) -> impl Iterator<Item = &'a Letter> {
        let letters = &self.letters[self.reckoned..];
        let fates = fates(letters, replies);
        letters
            .iter()
            .zip(fates)
            .filter(|(_, fate)| !fate.answered && !fate.reported)
            .map(|(letter, _)| letter)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Fate {
    answered: bool,
    reported: bool,
    doubted: bool,
}

fn tally(letters: &[Letter], unconfirmed: &BTreeSet<i64>, replies: &[Sent]) -> Tally {
    let mut tally = Tally {
        sent: letters.len(),
        ..Tally::default()
    };
    for (letter, fate) in letters.iter().zip(fates(letters, replies)) {
        let acknowledged = !unconfirmed.contains(&letter.update);
        tally.acknowledged += usize::from(acknowledged);
        if fate.answered {
            tally.answered += 1;
            if fate.doubted {
                tally.doubted_though_answered.push(letter.word.clone());
            }
        } else if fate.reported {
            tally.reported += 1;
        } else if acknowledged {
            tally.lost.push(letter.word.clone());
        } else {
            tally.waiting += 1;
        }
    }
    tally
}

/// What became of each letter.
///
/// An answer carries the letter's word. A report does not, and is laid to the oldest letter of its
/// chat that has no answer; in a chat of commands it can only be about the last one.
fn fates(letters: &[Letter], replies: &[Sent]) -> Vec<Fate> {
    let mut fates: Vec<Fate> = letters
        .iter()
        .map(|letter| Fate {
            answered: replies.iter().any(|sent| sent.answers(letter)),
            ..Fate::default()
        })
        .collect();
    let mut of_chat: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
    for (index, letter) in letters.iter().enumerate() {
        of_chat.entry(letter.user).or_default().push(index);
    }
    let first = letters.first().map_or(0, |letter| letter.replies_before);
    for (at, sent) in replies.iter().enumerate().skip(first) {
        if !sent.new || letters::has_word(&sent.text) {
            continue;
        }
        let known = of_chat.get(&sent.chat).map_or(&[][..], Vec::as_slice);
        let mut before = known
            .iter()
            .filter(|index| letters[**index].replies_before <= at);
        let about = match before.clone().next().map(|index| letters[*index].kind) {
            Some(Kind::Shell) => before.next_back(),
            _ => {
                let open = |index: &&usize| !fates[**index].answered && !fates[**index].reported;
                let last = before.clone().next_back();
                // A doubt where nothing is open is about something that was answered.
                let doubted = last.filter(|_| sent.text.contains(DOUBT));
                before.find(open).or(doubted)
            }
        };
        if let Some(index) = about {
            fates[*index].reported = true;
            fates[*index].doubted |= sent.text.contains(DOUBT);
        }
    }
    fates
}

/// Later messages with an answer that was there before: those that do not say so, and those that do.
fn repetitions(letters: &[Letter], replies: &[Sent]) -> (usize, usize) {
    let (mut unmarked, mut marked) = (0, 0);
    for letter in letters {
        let answers = replies.iter().filter(|sent| sent.answers(letter));
        let messages: BTreeMap<i64, bool> = answers
            .map(|sent| (sent.message, sent.text.contains(DUPLICATE_MARK)))
            .collect();
        for says_so in messages.values().skip(1) {
            marked += usize::from(*says_so);
            unmarked += usize::from(!*says_so);
        }
    }
    (unmarked, marked)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter(number: usize, user: i64, kind: Kind, replies_before: usize) -> Letter {
        Letter::new(number, user, kind, replies_before)
            .with_update(i64::try_from(number).expect("small"))
    }

    fn sent(chat: i64, message: i64, text: &str) -> Sent {
        Sent {
            chat,
            message,
            text: text.to_owned(),
            new: true,
        }
    }

    #[test]
    fn what_was_acknowledged_and_never_answered_is_lost() {
        let letters = [1, 2, 3].map(|number| letter(number, 7, Kind::Talk, 0));
        let replies = [sent(7, 1, "heard: w000001")];
        let waiting = BTreeSet::from([3]);
        let tally = tally(&letters, &waiting, &replies);
        assert_eq!(tally.lost, ["w000002"]);
        assert_eq!((tally.sent, tally.acknowledged), (3, 2));
        assert_eq!((tally.answered, tally.waiting), (1, 1));
    }

    #[test]
    fn a_report_is_no_answer_and_no_loss() {
        let letters = [1, 2].map(|number| letter(number, 7, Kind::Talk, 0));
        let replies = [sent(7, 1, "heard: w000002"), sent(7, 2, "Something broke")];
        let tally = tally(&letters, &BTreeSet::new(), &replies);
        assert_eq!((tally.answered, tally.reported), (1, 1));
        assert!(tally.lost.is_empty());
    }

    #[test]
    fn one_report_hides_one_loss_and_no_more() {
        let letters = [1, 2].map(|number| letter(number, 7, Kind::Talk, 0));
        let replies = [sent(7, 1, "Something broke"), sent(8, 2, "Something broke")];
        let tally = tally(&letters, &BTreeSet::new(), &replies);
        assert_eq!(tally.lost, ["w000002"]);
    }

    #[test]
    fn an_answered_command_that_is_doubted_is_told() {
        let letters = [
            letter(1, 9, Kind::Shell, 0),
            letter(2, 9, Kind::Shell, 1),
            letter(3, 9, Kind::Shell, 3),
        ];
        let doubt = format!("It {DOUBT}.");
        let replies = [
            sent(9, 1, "w000001"),
            sent(9, 2, "w000002"),
            sent(9, 3, &doubt),
            sent(9, 4, &doubt),
        ];
        let tally = tally(&letters, &BTreeSet::new(), &replies);
        assert_eq!(tally.doubted_though_answered, ["w000002"]);
        assert_eq!((tally.answered, tally.reported), (2, 1));
    }

    #[test]
    fn a_doubt_where_everything_was_answered_is_told() {
        let letters = [letter(1, 7, Kind::Talk, 0), letter(2, 7, Kind::Talk, 1)];
        let doubt = format!("It {DOUBT}.");
        let replies = [
            sent(7, 1, "heard: w000001"),
            sent(7, 2, "heard: w000002"),
            sent(7, 3, &doubt),
        ];
        let tally = tally(&letters, &BTreeSet::new(), &replies);
        assert_eq!(tally.doubted_though_answered, ["w000002"]);
    }

    #[test]
    fn an_answer_again_is_fine_if_it_says_so() {
        let letters = [letter(1, 7, Kind::Talk, 0)];
        let marked = format!("♻ {DUPLICATE_MARK}: heard: w000001");
        let replies = [
            sent(7, 1, "heard: w000001"),
            sent(7, 2, &marked),
            sent(7, 3, "heard: w000001"),
            // The same message, changed: no repetition.
            Sent {
                new: false,
                ..sent(7, 3, "heard: w000001.")
            },
        ];
        assert_eq!(repetitions(&letters, &replies), (1, 1));
    }
}
