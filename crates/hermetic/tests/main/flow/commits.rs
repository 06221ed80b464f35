//! Killed before each write to the store that one turn makes, in the order they come.
//!
//! What a message has been through is rows, so between two commits there is one state that a start can
//! find. A library that is loaded before the program's own counts them in it: a commit is the frame of
//! the write-ahead log that names the size of the file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use super::clerk::Clerk;
use super::lab::{Lab, Shared};

const SOURCE: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int seen;

static void look(int fd, const unsigned char *frame, size_t size) {
  char link[64], name[4096], text[16];
  if (size != 24 || !(frame[4] | frame[5] | frame[6] | frame[7])) return;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, name, sizeof name);
  if (length < 4 || memcmp(name + length - 4, "-wal", 4)) return;
  const char *path = getenv("KILL_BEFORE_COMMIT");
  int order = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (order < 0) return;
  length = read(order, text, sizeof text - 1);
  close(order);
  text[length > 0 ? length : 0] = 0;
  if (__atomic_add_fetch(&seen, 1, __ATOMIC_SEQ_CST) >= atoi(text)) kill(getpid(), SIGKILL);
}

ssize_t write(int fd, const void *bytes, size_t size) {
  static ssize_t (*next)(int, const void *, size_t);
  if (!next) next = dlsym(RTLD_NEXT, "write");
  look(fd, bytes, size);
  return next(fd, bytes, size);
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t at) {
  static ssize_t (*next)(int, const void *, size_t, off64_t);
  if (!next) next = dlsym(RTLD_NEXT, "pwrite64");
  look(fd, bytes, size);
  return next(fd, bytes, size, at);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at) {
  return pwrite64(fd, bytes, size, at);
}
"#;

/// More than a turn with a tool makes, and those of the next message, so that the sweep covers all.
const COMMITS: i64 = 18;

const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Makes whoever is killed late enough write again.
const NUDGER: i64 = 98;

struct Killer {
    folder: TempDir,
    library: PathBuf,
}

impl Killer {
    fn build() -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let source = folder.path().join("killer.c");
        let library = folder.path().join("killer.so");
        fs::write(&source, SOURCE).map_err(|error| error.to_string())?;
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-o"])
            .args([&library, &source])
            .arg("-ldl")
            .status()
            .map_err(|error| format!("cc does not start: {error}"))?;
        match built.success() {
            true => Ok(Self { folder, library }),
            false => Err("cc cannot build a library".to_owned()),
        }
    }

    fn order(&self) -> PathBuf {
        self.folder.path().join("order")
    }

    fn start(&self, lab: &mut Lab) {
        let _ = fs::remove_file(self.order());
        let text = |path: &Path| path.display().to_string();
        lab.restart_with(&[
            ("LD_PRELOAD", &text(&self.library)),
            ("KILL_BEFORE_COMMIT", &text(&self.order())),
        ]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_before_each_write_of_a_turn_nothing_is_lost_or_doubled() {
    let test = "killed_before_each_write_of_a_turn_nothing_is_lost_or_doubled";
    let killer = match Killer::build() {
        Ok(killer) => killer,
        Err(why) => return eprintln!("SKIP: {test}: {why}"),
    };
    let shared = Shared::new();
    let access = "TELEGRAM_ALLOW_ALL_USERS=true";
    let Some(mut lab) = Lab::start_with(test, [], &shared.config(), access).await else {
        return;
    };
    let clerk = Clerk::start().await;
    lab.terminate();
    clerk.takes_the_place_of_the_model(&lab);
    for commit in 1..=COMMITS {
        let user = 100 + commit;
        killer.start(&mut lab);
        fs::write(killer.order(), commit.to_string()).unwrap();
        lab.telegram
            .says(user, &format!("echo {user} >> /shared/log; echo ran it"));
        let killed = timeout(PATIENCE, async {
            while !lab.has_ended() {
                if lab.sent_to(user) > 0 {
                    lab.telegram.says(NUDGER, "/help");
                }
                sleep(LOOK_AGAIN).await;
            }
        });
        assert!(killed.await.is_ok(), "never killed before commit {commit}");
        lab.restart();
        let replies = lab.replies(user, 1).await;
        assert!(replies[0].contains("It is "), "{commit}: {replies:?}");
        lab.terminate();
        let log = fs::read_to_string(shared.path("log")).unwrap();
        let own = user.to_string();
        let ran = log.lines().filter(|line| **line == own).count();
        let replies = lab.replies(user, 1).await;
        assert!(ran <= 1, "{commit}: it ran {ran} times: {replies:?}");
        if replies[0].contains("It is done") {
            assert_eq!(ran, 1, "{commit}: {replies:?}");
        }
        for more in &replies[1..] {
            assert!(more.contains("Possible duplicate"), "{commit}: {more}");
        }
    }
    lab.restart();
    for user in 101..=100 + COMMITS {
        lab.destroy(user).await;
    }
    assert_eq!(lab.sandboxes(), [""; 0]);
}
