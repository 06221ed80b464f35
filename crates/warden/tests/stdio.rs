//! A first link on the warden's own stdin and stdout.

use hermetic_warden::client::Warden;
use hermetic_warden::protocol::Status;

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
    assert_eq!(told.ended.status, Status::Exited(0));

    // It goes, and those who come later find the warden where it listens.
    first.close();
    let second = lab.warden().await;
    assert_eq!(
        run(&second, sh("echo still here")).await.out,
        b"still here\n"
    );
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
