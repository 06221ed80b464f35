//! A first link on the warden's own stdin and stdout.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use hermetic_types::HolderEpoch;
use hermetic_warden::client::Warden;
use hermetic_warden::protocol::ExitState;

use crate::lab::{Lab, PATIENCE, run, sh};

#[tokio::test]
async fn the_first_link_may_be_stdin_and_stdout() {
    let (lab, pipes) = Lab::on_stdio(&[]).await;
    let first = Warden::greet(pipes, PATIENCE).await.unwrap();
    // Far more than a pipe holds, both ways.
    let told = run(&first, sh("head -c 8388608 /dev/zero")).await;
    assert_eq!(told.out.len(), 8 << 20);
    // Commands have none of it.
    let told = run(&first, sh("cat; readlink /proc/self/fd/* | grep -c pipe")).await;
    assert_eq!(told.ended.status, ExitState::Exited(0));

    // It goes, and those who come later find the warden where it listens.
    first.close();
    let second = lab.warden().await;
    assert_eq!(
        run(&second, sh("echo still here")).await.out,
        b"still here\n"
    );
}

/// A creator's pipes block unless somebody changes that, and the warden has one thread for everything.
#[tokio::test]
async fn the_first_link_never_blocks_the_warden() {
    const O_NONBLOCK: u32 = 0o4000;
    if !rustix::process::geteuid().is_root() {
        // The warden hides itself from its own user.
        return eprintln!("SKIP: the_first_link_never_blocks_the_warden: needs root");
    }
    // Whoever started the tests may have left pipes open for everybody.
    let others = pipes_of(std::process::id());
    let (lab, pipes) = Lab::on_stdio(&[]).await;
    let first = Warden::greet(pipes, PATIENCE).await.unwrap();
    let mut ours = pipes_of(std::process::id());
    ours.retain(|_, pipe| !others.values().any(|other| other == pipe));
    let mut link = pipes_of(lab.pid());
    link.retain(|_, pipe| ours.values().any(|our| our == pipe));
    assert_eq!(link.len(), 2, "one to read and one to write: {link:?}");
    for fd in link.keys() {
        let info = fs::read_to_string(format!("/proc/{}/fdinfo/{fd}", lab.pid())).unwrap();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = u32::from_str_radix(flags.unwrap().trim(), 8).unwrap();
        assert_ne!(flags & O_NONBLOCK, 0, "{fd}: {info}");
    }
    first.close();
}

/// An engine keeps the pipes of a container open for as long as it lives, so that their end says nothing.
#[tokio::test]
async fn who_is_cut_off_hears_it_although_somebody_keeps_its_pipes_open() {
    let others = pipes_of(std::process::id());
    let (lab, pipes) = Lab::on_stdio(&[]).await;
    let mut ours = pipes_of(std::process::id());
    ours.retain(|_, pipe| !others.values().any(|other| other == pipe));
    let keep = |fd| {
        let path = format!("/proc/self/fd/{fd}");
        fs::File::options().read(true).write(true).open(path)
    };
    let kept: Vec<_> = ours.keys().map(keep).collect::<Result<_, _>>().unwrap();
    assert_eq!(kept.len(), 2);

    let first = Warden::greet(pipes, PATIENCE).await.unwrap();
    first.hold(HolderEpoch::new(1)).await.unwrap();
    let second = lab.warden().await;
    second.hold(HolderEpoch::new(2)).await.unwrap();
    let closed = tokio::time::timeout(PATIENCE, first.closed()).await;
    closed.expect("its link says goodbye");
    assert_eq!(run(&second, sh("echo here")).await.out, b"here\n");
}

/// The descriptors of a process that are pipes, and which.
fn pipes_of(pid: u32) -> BTreeMap<String, PathBuf> {
    let fds = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let target = |fd: fs::DirEntry| {
        let name = fd.file_name().into_string().ok()?;
        Some((name, fs::read_link(fd.path()).ok()?))
    };
    fds.filter_map(target)
        .filter(|(_, target)| target.to_string_lossy().starts_with("pipe:"))
        .collect()
}

#[tokio::test]
async fn a_warden_tied_to_its_stdin_ends_with_it() {
    let (mut lab, pipes) = Lab::on_stdio(&["--tied"]).await;
    let first = Warden::greet(pipes, PATIENCE).await.unwrap();
    assert_eq!(run(&first, sh("echo here")).await.out, b"here\n");
    // Somebody else's coming and going ends nothing.
    lab.warden().await.close();
    assert_eq!(run(&first, sh("echo here")).await.out, b"here\n");
    first.close();
    lab.until_ended().await;
}

#[tokio::test]
async fn whoever_dies_before_a_word_ends_what_is_tied_to_him() {
    let (mut lab, pipes) = Lab::on_stdio(&["--tied"]).await;
    drop(pipes);
    lab.until_ended().await;
}
