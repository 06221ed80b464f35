//! What a sandbox can put in the way. Nothing hangs, nothing outside is touched.

use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use super::{content, error};
use crate::lab::{local, native};

#[test]
fn what_is_no_file_is_refused_at_once() {
    native(async |lab| {
        lab.sh("mkfifo pipe; ln -s loop loop; ln -s /dev/zero zero; ln -s nowhere dangling; python3 -c \
                'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")'").await;
        for path in [
            "pipe",
            "sock",
            "loop",
            "zero",
            "dangling",
            "/dev/zero",
            "/dev/null",
            "/dev/stdin",
            "/proc/self/mem",
            "/proc/self/environ",
            "/proc/1/maps",
            "/proc/thread-self/fd/0",
            "/proc/self/root/etc/passwd/..",
        ] {
            for (tool, arguments) in [
                ("read_file", json!({"path": path})),
                ("write_file", json!({"path": path, "content": "x"})),
                (
                    "patch",
                    json!({"mode": "replace", "path": path, "old_string": "a", "new_string": "b"}),
                ),
            ] {
                let refused = lab.call(tool, arguments).await;
                assert!(!error(&refused).is_empty(), "{tool} {path}: {refused}");
            }
        }
        assert_eq!(
            lab.sh("stat -c %F pipe sock; ls -A").await.lines().count(),
            7
        );
        let kernel = lab
            .call("read_file", json!({"path": "/proc/meminfo"}))
            .await;
        assert!(content(&kernel).contains("MemTotal"), "{kernel}");
    });
}

#[test]
fn a_folder_that_becomes_a_symlink_is_not_followed() {
    // On this machine itself, where following would matter.
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    let keys = home.join(".ssh");
    std::fs::create_dir_all(&keys).unwrap();
    std::fs::write(keys.join("file"), "mine").unwrap();
    let (folder, aside) = (home.join("work/folder"), home.join("work/aside"));
    let done = AtomicBool::new(false);
    local(&home, async |lab| {
        std::fs::create_dir_all(&folder).unwrap();
        std::thread::scope(|threads| {
            threads.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let _ = std::fs::rename(&folder, &aside);
                    if symlink(&keys, &folder).is_ok() {
                        std::fs::remove_file(&folder).unwrap();
                    } else {
                        // The tool made the folder that was missing for a moment, and may be
                        // writing to it.
                        let _ = std::fs::remove_dir_all(&folder);
                    }
                    let _ = std::fs::rename(&aside, &folder);
                }
            });
            tokio::task::block_in_place(|| {
                tokio::runtime::Handle::current().block_on(async {
                    for turn in 0..300 {
                        let text = turn.to_string();
                        let write = json!({"path": "folder/file", "content": text});
                        lab.call("write_file", write).await;
                    }
                });
            });
            done.store(true, Ordering::Relaxed);
        });
    });
    assert_eq!(std::fs::read_to_string(keys.join("file")).unwrap(), "mine");
    assert_eq!(
        std::fs::read_dir(&keys).unwrap().count(),
        1,
        "no part is left"
    );
}

#[test]
fn on_the_host_a_symlink_is_judged_by_where_it_leads() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    std::fs::create_dir_all(home.join(".ssh")).unwrap();
    std::fs::write(home.join(".ssh/authorized_keys"), "mine\n").unwrap();
    local(&home, async |lab| {
        symlink(home.join(".ssh"), home.join("work/keys")).unwrap();
        for (tool, arguments) in [
            (
                "write_file",
                json!({"path": "keys/authorized_keys", "content": "theirs"}),
            ),
            (
                "write_file",
                json!({"path": "keys/new", "content": "theirs"}),
            ),
            (
                "patch",
                json!({"mode": "replace", "path": "keys/authorized_keys", "old_string": "mine", "new_string": "theirs"}),
            ),
            (
                "patch",
                json!({"mode": "patch", "patch": "*** Delete File: keys/authorized_keys"}),
            ),
            ("write_file", json!({"path": "~/.bashrc", "content": "x"})),
            ("write_file", json!({"path": ".env", "content": "x"})),
        ] {
            let refused = lab.call(tool, arguments).await;
            assert!(error(&refused).contains("nobody to ask"), "{refused}");
            assert_eq!(refused["status"], "blocked");
        }
        let fine = lab
            .call("write_file", json!({"path": "notes.txt", "content": "x"}))
            .await;
        assert_eq!(fine["bytes_written"], 1, "{fine}");
    });
    assert_eq!(
        std::fs::read_to_string(home.join(".ssh/authorized_keys")).unwrap(),
        "mine\n"
    );
    assert_eq!(std::fs::read_dir(home.join(".ssh")).unwrap().count(), 1);
    assert!(!home.join(".bashrc").exists());
}

#[test]
fn an_interrupt_ends_a_call() {
    native(async |lab| {
        lab.sh("echo x > file").await;
        lab.stop.cancel();
        let ended = lab.call("read_file", json!({"path": "file"})).await;
        assert!(ended.get("error").is_some() || ended.get("content").is_some());
    });
}
