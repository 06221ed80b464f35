//! A chat platform and a model for a gateway on another machine, told what to do by lines on stdin.
//!
//! `cargo xtask vm` starts it: it has to outlive the machine whose power is cut. Each line is
//! answered by one line; the end of the input is the end of the program.
//!
//! ```text
//! say USER TEXT             somebody writes                     -> said
//! await USER SECONDS TEXT   a reply with TEXT since that        -> heard REPLY | silence REPLIES
//! flow TALKERS SHELLS OPEN  people write, each with so many unanswered letters -> flowing
//! progress                  of this stretch                     -> progress ACKNOWLEDGED REPLIED
//! dry                       nobody writes any more              -> dry
//! settle QUIET PATIENCE     until all is told and nothing came for QUIET seconds, or something is missing
//!                           and nothing came for PATIENCE seconds: this stretch -> settled KEY=VALUE...
//! sum QUIET                 until nothing came for QUIET seconds: all stretches -> settled KEY=VALUE...
//! ```

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "its answers are lines on stdout")]

use std::io::BufRead;
use std::time::Duration;

use hermetic_testkit::telegram::TOKEN;
use hermetic_testkit::traffic::{Tally, Traffic};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

const TICK: Duration = Duration::from_millis(50);

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let mut desk = Desk {
        traffic: Traffic::start().await?,
        flow: None,
        said_after: 0,
    };
    let telegram = desk.traffic.telegram().url();
    println!("ready {telegram} {} {TOKEN}", desk.traffic.model_url());
    let mut lines = lines();
    loop {
        let line = match desk.flow {
            None => lines.recv().await,
            Some((talkers, shells, open)) => match timeout(TICK, lines.recv()).await {
                Ok(line) => line,
                Err(_) => {
                    desk.traffic.write(talkers, shells, open);
                    continue;
                }
            },
        };
        let Some(line) = line else {
            return Ok(());
        };
        let answer = desk.obey(&line).await;
        println!("{}", answer.unwrap_or_else(|| format!("what? {line}")));
    }
}

/// A thread of its own: reading a terminal or a pipe cannot be cancelled.
fn lines() -> mpsc::Receiver<String> {
    let (give, take) = mpsc::channel(16);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if give.blocking_send(line).is_err() {
                return;
            }
        }
    });
    take
}

struct Desk {
    traffic: Traffic,
    flow: Option<(i64, i64, usize)>,
    /// How many messages the bot had sent when somebody last wrote by `say`.
    said_after: usize,
}

impl Desk {
    async fn obey(&mut self, line: &str) -> Option<String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "say" => {
                let (user, text) = rest.split_once(' ')?;
                self.said_after = self.messages().len();
                self.traffic.telegram().says(user.parse().ok()?, text);
                Some("said".to_owned())
            }
            "await" => {
                let mut words = rest.splitn(3, ' ');
                let user = words.next()?.parse().ok()?;
                let seconds = words.next()?.parse().ok()?;
                let text = words.next().unwrap_or_default();
                Some(self.wait(user, Duration::from_secs(seconds), text).await)
            }
            "flow" => {
                let mut words = rest.split(' ');
                let [talkers, shells] = [words.next()?, words.next()?].map(str::parse);
                self.flow = Some((talkers.ok()?, shells.ok()?, words.next()?.parse().ok()?));
                Some("flowing".to_owned())
            }
            "progress" => {
                let (acknowledged, replied) = self.traffic.progress();
                Some(format!("progress {acknowledged} {replied}"))
            }
            "dry" => {
                self.flow = None;
                Some("dry".to_owned())
            }
            "settle" => {
                let (quiet, patience) = rest.split_once(' ')?;
                let [quiet, patience] = [quiet, patience].map(|word| word.parse().ok());
                self.wait_for_quiet(quiet?, patience?).await;
                Some(settled(&self.traffic.reckon()))
            }
            "sum" => {
                let quiet = rest.parse().ok()?;
                self.wait_for_quiet(quiet, quiet).await;
                Some(settled(&self.traffic.sum()))
            }
            _ => None,
        }
    }

    /// The texts of the bot's messages with their chats, as they read now.
    fn messages(&self) -> Vec<(i64, String)> {
        let mut messages: Vec<(i64, i64, String)> = Vec::new();
        for sent in self.traffic.replies() {
            match messages.iter_mut().find(|(_, id, _)| *id == sent.message) {
                Some((_, _, text)) if !sent.new => *text = sent.text,
                _ => messages.push((sent.chat, sent.message, sent.text)),
            }
        }
        let texts = messages.into_iter().map(|(chat, _, text)| (chat, text));
        texts.collect()
    }

    async fn wait(&self, user: i64, at_most: Duration, text: &str) -> String {
        let end = Instant::now() + at_most;
        loop {
            let said = self.messages().into_iter().skip(self.said_after);
            let said: Vec<_> = said
                .filter_map(|(chat, text)| (chat == user).then_some(text))
                .collect();
            if let Some(found) = said.iter().find(|said| said.contains(text)) {
                return format!("heard {}", one_line(found));
            }
            if Instant::now() > end {
                return format!("silence {}", one_line(&said.join(" | ")));
            }
            sleep(TICK).await;
        }
    }

    /// Nobody writes any more, and the bot has been silent for so many seconds: `quiet` where every letter
    /// was answered, `patience` where one was not.
    async fn wait_for_quiet(&mut self, quiet: u64, patience: u64) {
        self.flow = None;
        let mut last = (usize::MAX, usize::MAX, usize::MAX);
        let mut since = Instant::now();
        loop {
            let (acknowledged, replied) = self.traffic.progress();
            let now = (acknowledged, replied, self.traffic.replies().len());
            if now != last {
                (last, since) = (now, Instant::now());
            }
            let enough = if self.traffic.told() { quiet } else { patience };
            if since.elapsed() > Duration::from_secs(enough) {
                return;
            }
            sleep(TICK).await;
        }
    }
}

fn settled(tally: &Tally) -> String {
    format!(
        "settled sent={} acknowledged={} answered={} reported={} lost={} waiting={} \
         repeated_unmarked={} repeated_marked={} doubted={} words={}",
        tally.sent,
        tally.acknowledged,
        tally.answered,
        tally.reported,
        tally.lost.len(),
        tally.waiting,
        tally.repeated_unmarked,
        tally.repeated_marked,
        tally.doubted_though_answered.len(),
        [&tally.lost[..], &tally.doubted_though_answered[..]]
            .concat()
            .join(","),
    )
}

fn one_line(text: &str) -> String {
    text.replace('\n', "\\n")
}
