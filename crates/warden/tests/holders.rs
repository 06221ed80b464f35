//! Gateways that take a sandbox over from each other.

use std::time::Duration;

use hermetic_types::HolderEpoch;
use hermetic_warden::client::{HoldOutcome, RunEvent, Warden, WardenCallError};
use hermetic_warden::protocol::frame::{FrameKind, header};
use hermetic_warden::protocol::{
    ExitState, FailureKind, ListenEndpoint, PathAt, ShellRequest, WardenFailure, WriteRequest,
    encode, hello,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::lab::{Lab, PATIENCE, alive, run, sh, told, until};

fn epoch(number: u64) -> HolderEpoch {
    HolderEpoch::new(number)
}

async fn holder(lab: &Lab, number: u64) -> Warden {
    let warden = lab.warden().await;
    warden.hold(epoch(number)).await.unwrap();
    warden
}

async fn until_closed(warden: &Warden) {
    let closed = tokio::time::timeout(PATIENCE, warden.closed()).await;
    closed.expect("its link is cut");
}

#[tokio::test]
async fn a_later_holder_has_the_running_command_and_the_earlier_one_nothing() {
    let lab = Lab::new().await;
    let first = holder(&lab, 1).await;
    let again = holder(&lab, 1).await;
    let go = lab.path("go");
    let mut request = sh(&format!(
        "echo early; until [ -e {0} ]; do sleep 0.01; done; echo late; exit 9",
        go.display()
    ));
    request.detach = true;
    let id = request.id.clone();
    let mut running = first.run(request).await.unwrap();
    while !matches!(running.next().await.unwrap(), Some(RunEvent::Out(_))) {}
    // Two links of one holder live side by side.
    assert_eq!(run(&again, sh("echo both")).await.out, b"both\n");

    let second = holder(&lab, 2).await;
    until_closed(&first).await;
    until_closed(&again).await;
    let lost = told(running).await;
    assert!(matches!(lost, Err(WardenCallError::LinkLost)), "{lost:?}");
    let following = second.attach(id, 0).await.unwrap();
    // Replayed as often as one likes.
    for _ in 0..3 {
        let late = lab.warden().await;
        match late.hold(epoch(1)).await {
            Err(WardenCallError::HeldElsewhere { since }) => assert_eq!(since, epoch(2)),
            other => panic!("{other:?}"),
        }
        until_closed(&late).await;
    }
    std::fs::write(&go, "").unwrap();
    let told = told(following).await.unwrap();
    assert_eq!(
        (told.out.as_slice(), told.ended.status),
        (&b"early\nlate\n"[..], ExitState::Exited(9))
    );
}

#[tokio::test]
async fn what_an_earlier_holder_had_sent_and_was_not_begun_is_not_done() {
    let lab = Lab::new().await;
    let first = holder(&lab, 1).await;
    let (go, never) = (lab.path("go"), lab.path("never"));
    let shell = |text: String| {
        let mut shell = ShellRequest::new("main", text);
        shell.detach = true;
        shell
    };
    let waiting = format!(
        "echo up; until [ -e {} ]; do sleep 0.01; done",
        go.display()
    );
    let mut busy = first.shell(shell(waiting)).await.unwrap();
    while !matches!(busy.next().await.unwrap(), Some(RunEvent::Out(_))) {}
    // In the queue of the shell, behind what runs there.
    let queued = first
        .shell(shell(format!("touch {}", never.display())))
        .await
        .unwrap();
    // Half a file, and a socket that somebody could come by.
    let (half, door) = (lab.path("half"), lab.path("door"));
    let at = PathAt::anywhere(half.clone());
    let mut file = first.write_file(WriteRequest::new(at)).await.unwrap();
    file.write(b"half").await.unwrap();
    let endpoint = ListenEndpoint::Unix(door.clone().into());
    let listener = first.listen(endpoint, 4).await.unwrap();
    // A command that is not detached ends with its caller, also one who is cut off.
    let mut bound = first.run(sh("echo $$; sleep 1000")).await.unwrap();
    let pid = loop {
        if let Some(RunEvent::Out(bytes)) = bound.next().await.unwrap() {
            break String::from_utf8(bytes.to_vec()).unwrap();
        }
    };
    let pid = pid.trim().parse().unwrap();

    let second = holder(&lab, 2).await;
    until_closed(&first).await;
    assert!(file.finish().await.is_err());
    std::fs::write(&go, "").unwrap();
    until("the earlier holder's command is gone", || !alive(pid)).await;
    until("its socket is gone", || !door.exists()).await;
    assert!(UnixStream::connect(&door).await.is_err());
    drop((listener, queued));
    // The shell is free again once what ran there is over: what waited behind it is not run.
    let free = loop {
        let text = ShellRequest::new("main", "echo free".to_owned());
        match told(second.shell(text).await.unwrap()).await {
            Ok(told) => break told,
            Err(WardenCallError::Failed(failure)) if failure.kind == FailureKind::ShellBusy => {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            Err(error) => panic!("{error:?}"),
        }
    };
    assert_eq!(free.out, b"free\n");
    assert!(!never.exists() && !half.exists());
    assert_eq!(second.info().await.unwrap().listeners, 0);
}

#[tokio::test]
async fn of_links_that_race_those_of_the_highest_epoch_stay() {
    let lab = Lab::new().await;
    for round in 0..20 {
        let base = round * 10;
        let links = (0..12_u64).map(|number| {
            let stream = lab.stream();
            async move {
                let warden = Warden::greet(stream.await, PATIENCE).await.unwrap();
                let said = base + 1 + number * 7 % 5;
                (said, warden.hold(epoch(said)).await, warden)
            }
        });
        let mut highest = Vec::new();
        for (said, held, warden) in futures::future::join_all(links).await {
            if said == base + 5 {
                assert!(matches!(held, Ok(HoldOutcome::Held)), "{held:?}");
                assert_eq!(run(&warden, sh("echo mine")).await.out, b"mine\n");
                highest.push(warden);
            } else {
                // Told no, or cut off when a higher one came.
                until_closed(&warden).await;
            }
        }
        assert!(highest.iter().all(|warden| !warden.is_closed()));
    }
}

#[tokio::test]
async fn a_gateway_from_before_there_were_holders_is_refused_in_words_once_there_is_one() {
    let lab = Lab::new().await;
    let older = lab.warden().await;
    assert_eq!(run(&older, sh("echo as ever")).await.out, b"as ever\n");
    let newer = holder(&lab, 1).await;
    until_closed(&older).await;
    let back = lab.warden().await;
    let refused = told(back.run(sh("echo never")).await.unwrap()).await;
    match refused {
        Err(WardenCallError::Failed(failure)) => {
            assert_eq!(failure.kind, FailureKind::Refused);
            assert_eq!(failure.text, "another gateway has this sandbox");
        }
        other => panic!("{other:?}"),
    }
    // It would keep the sandbox from being idle.
    until_closed(&back).await;
    // A person at the machine looks in beside the holder.
    let visitor = lab.warden().await;
    visitor.visit().await.unwrap();
    assert_eq!(run(&visitor, sh("echo guest")).await.out, b"guest\n");
    assert_eq!(run(&newer, sh("echo host")).await.out, b"host\n");
    holder(&lab, 2).await;
    until_closed(&visitor).await;
}

#[tokio::test]
async fn a_warden_from_before_there_were_holders_is_used_as_it_is() {
    let (ours, mut theirs) = tokio::io::duplex(1 << 16);
    theirs.write_all(&hello::hello()).await.unwrap();
    let warden = Warden::greet(ours, PATIENCE).await.unwrap();
    let unknown = encode(&WardenFailure {
        kind: FailureKind::BadRequest,
        errno: None,
        text: "malformed request".to_owned(),
    });
    let answering = async {
        // Their hello, yamux's ping, and then the first call with its header.
        let mut heard = 0;
        while heard < hello::LENGTH + 12 + 12 + 5 {
            heard += theirs.read(&mut [0; 64]).await.unwrap();
        }
        let frame = [
            &header(FrameKind::Failed, unknown.len())[..],
            unknown.as_slice(),
        ]
        .concat();
        let mut bytes = vec![0, 0, 0, 0, 0, 0, 0, 1];
        bytes.extend_from_slice(&u32::try_from(frame.len()).unwrap().to_be_bytes());
        bytes.extend_from_slice(&frame);
        theirs.write_all(&bytes).await.unwrap();
    };
    let (held, ()) = tokio::join!(warden.hold(epoch(7)), answering);
    assert!(matches!(held, Ok(HoldOutcome::NotKept)), "{held:?}");
    assert!(!warden.is_closed());
}

#[tokio::test]
async fn bytes_that_are_no_epoch_change_nothing() {
    /// Where `Hold` stands among the requests, and `As` among its words.
    const HOLD_AS: [u8; 2] = [15, 0];
    let lab = Lab::new().await;
    let good = holder(&lab, 3).await;
    for hostile in [
        &[][..],
        &[0xff; 9],
        &[0xff; 10],
        &[0xff; 64],
        // A second number behind the first.
        &[9, 9],
    ] {
        let payload = [&HOLD_AS[..], hostile].concat();
        let mut frame = header(FrameKind::Request, payload.len()).to_vec();
        frame.extend_from_slice(&payload);
        let mut bytes = hello::hello().to_vec();
        bytes.extend_from_slice(&[0, 0, 0, 1, 0, 0, 0, 1]);
        bytes.extend_from_slice(&u32::try_from(frame.len()).unwrap().to_be_bytes());
        bytes.extend_from_slice(&frame);
        let mut stream = lab.stream().await;
        stream.write_all(&bytes).await.unwrap();
        let _ = stream.shutdown().await;
        let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut Vec::new())).await;
    }
    assert_eq!(run(&good, sh("echo fine")).await.out, b"fine\n");
    // The highest is still the one that was said.
    holder(&lab, 3).await;
}
