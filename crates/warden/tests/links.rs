//! Links: many calls, stalled readers, lost and hostile ones.

use std::time::Duration;

use hermetic_warden::client::{GreetError, RunEvent, Warden, WardenCallError};
use hermetic_warden::protocol::frame::{FrameKind, header};
use hermetic_warden::protocol::{ExitState, FailureKind, ListenEndpoint, StdinMode, hello};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

use crate::lab::{Lab, PATIENCE, alive, run, sh, told};

#[tokio::test]
async fn a_thousand_in_a_row_and_fifty_at_once() {
    let lab = Lab::new().await;
    let warden = lab.warden().await;
    for number in 0..1000 {
        let told = run(&warden, sh(&format!("exit {}", number % 256))).await;
        assert_eq!(told.ended.status, ExitState::Exited(number % 256));
    }
    let all = (0..50).map(|number| {
        let warden = warden.clone();
        tokio::spawn(async move {
            let told = run(&warden, sh(&format!("sleep 0.1; echo {number}"))).await;
            assert_eq!(told.out, format!("{number}\n").into_bytes());
        })
    });
    for one in all.collect::<Vec<_>>() {
        one.await.unwrap();
    }
}

#[tokio::test]
async fn sixty_four_megabytes_arrive_unchanged() {
    let lab = Lab::new().await;
    let warden = lab.warden().await;
    let script = "head -c 67108864 /dev/urandom >bytes; sha256sum <bytes >&2; cat bytes";
    let told = run(&warden, sh(script)).await;
    assert_eq!(told.out.len(), 64 << 20);
    let err = String::from_utf8(told.err).unwrap();
    assert_eq!(err.split(' ').next().unwrap(), crate::runs::hex(&told.out));
}

#[tokio::test]
async fn a_stalled_reader_costs_little_and_holds_up_nobody_else() {
    let lab = Lab::new().await;
    let warden = lab.warden().await;
    let mut stalled = warden.run(sh("yes")).await.unwrap();
    assert!(matches!(
        stalled.next().await.unwrap(),
        Some(RunEvent::Started { .. })
    ));
    for _ in 0..50 {
        assert_eq!(
            run(&warden, sh("echo others go on")).await.out,
            b"others go on\n"
        );
    }
    assert!(lab.rss_kib() < 6 * 1024, "{} KiB", lab.rss_kib());
    assert!(matches!(
        stalled.next().await.unwrap(),
        Some(RunEvent::Out(_))
    ));
}

#[tokio::test]
async fn a_detached_run_is_picked_up_by_the_next_link() {
    let lab = Lab::new().await;
    let first = lab.warden().await;
    let go = lab.path("go");
    let mut request = sh(&format!(
        "echo early; until [ -e {0} ]; do sleep 0.01; done; head -c 2000000 /dev/zero; echo; echo late; exit 9",
        go.display()
    ));
    request.detach = true;
    let id = request.id.clone();
    let mut running = first.run(request).await.unwrap();
    let mut seen = 0;
    while let Some(event) = running.next().await.unwrap() {
        if let RunEvent::Out(bytes) = event {
            seen += bytes.len() as u64;
            break;
        }
    }
    first.close();
    drop((running, first));
    std::fs::write(&go, "").unwrap();

    let second = lab.warden().await;
    let runs = second.runs().await.unwrap();
    assert!(runs.iter().any(|run| run.id == id && run.detached));
    let told = told(second.attach(id.clone(), seen).await.unwrap())
        .await
        .unwrap();
    assert_eq!(told.ended.status, ExitState::Exited(9));
    assert!(told.out.ends_with(b"\nlate\n"));
    assert_eq!(told.out.len() as u64 + told.skipped, 2_000_000 + 6);

    let again = crate::lab::told(second.attach(id, 0).await.unwrap())
        .await
        .unwrap();
    assert!(
        again.out.starts_with(b"early\n"),
        "an ended run can be read again"
    );
    let unknown = second.attach("nobody".parse().unwrap(), 0).await.unwrap();
    match crate::lab::told(unknown).await {
        Err(WardenCallError::Failed(failure)) => assert_eq!(failure.kind, FailureKind::NoSuchRun),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn of_two_who_pick_up_a_run_at_once_the_later_one_has_it() {
    let lab = Lab::new().await;
    let warden = lab.warden().await;
    let go = lab.path("go");
    let mut request = sh(&format!(
        "head -c 400000 /dev/zero; until [ -e {0} ]; do sleep 0.01; done; echo late",
        go.display()
    ));
    request.detach = true;
    let id = request.id.clone();
    let mut running = warden.run(request).await.unwrap();
    let mut seen = 0;
    while seen < 400_000 {
        if let Some(RunEvent::Out(bytes)) = running.next().await.unwrap() {
            seen += bytes.len();
        }
    }
    // What is kept is more than a stream takes unread, so this one is being given it until he reads.
    let mut earlier = warden.attach(id.clone(), 0).await.unwrap();
    assert!(matches!(
        earlier.next().await.unwrap(),
        Some(RunEvent::Started { .. })
    ));
    let mut later = warden.attach(id, 0).await.unwrap();
    let mut seen = 0;
    while seen < 400_000 {
        match later.next().await.unwrap().unwrap() {
            RunEvent::Out(bytes) => seen += bytes.len() as u64,
            RunEvent::Skipped(count) => seen += count,
            _ => {}
        }
    }
    match told(earlier).await {
        Err(WardenCallError::Failed(failure)) => assert_eq!(failure.kind, FailureKind::Superseded),
        other => panic!("{other:?}"),
    }
    std::fs::write(&go, "").unwrap();
    assert_eq!(told(later).await.unwrap().out, b"late\n");
}

#[tokio::test]
async fn a_look_at_a_run_takes_it_from_nobody() {
    let lab = Lab::new().await;
    let warden = lab.warden().await;
    let go = lab.path("go");
    let mut request = sh(&format!(
        "echo early; until [ -e {0} ]; do sleep 0.01; done; echo late; exit 9",
        go.display()
    ));
    request.detach = true;
    let id = request.id.clone();
    let mut running = warden.run(request).await.unwrap();
    while !matches!(running.next().await.unwrap().unwrap(), RunEvent::Out(_)) {}

    let other = lab.warden().await;
    let seen = other.look(id.clone(), 0).await.unwrap();
    assert_eq!(seen, [RunEvent::Out("early\n".into())]);
    assert_eq!(other.look(id.clone(), 6).await.unwrap(), []);
    other.close();
    std::fs::write(&go, "").unwrap();
    let told = told(running).await.unwrap();
    assert_eq!(told.ended.status, ExitState::Exited(9));
    assert_eq!(told.out, b"late\n");

    // Of one that is not detached nothing is kept, and it does not end by being looked at.
    let mut request = sh("echo up; read -r line; echo \"got $line\"");
    request.stdin = StdinMode::Open;
    let id = request.id.clone();
    let mut running = warden.run(request).await.unwrap();
    while !matches!(running.next().await.unwrap().unwrap(), RunEvent::Out(_)) {}
    for (id, kind) in [
        (id, FailureKind::Refused),
        ("nobody".parse().unwrap(), FailureKind::NoSuchRun),
    ] {
        match lab.warden().await.look(id, 0).await {
            Err(WardenCallError::Failed(failure)) => assert_eq!(failure.kind, kind),
            other => panic!("{other:?}"),
        }
    }
    let stdin = running.stdin();
    stdin.write(b"it\n").await.unwrap();
    let told = crate::lab::told(running).await.unwrap();
    assert_eq!(told.out, b"got it\n");
}

#[tokio::test]
async fn connections_made_inside_come_out_here() {
    let lab = Lab::new().await;
    let warden = lab.warden().await;
    let path = lab.path("tool.sock");
    let mut listener = warden
        .listen(ListenEndpoint::Unix(path.clone().into()), 8)
        .await
        .unwrap();
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let mut inside = UnixStream::connect(&path).await.unwrap();
    let mut outside = listener.accept().await.unwrap();
    converse(&mut inside, &mut outside).await;

    let mut port = warden.listen(ListenEndpoint::Tcp(0), 2).await.unwrap();
    let mut inside = TcpStream::connect(("127.0.0.1", port.port()))
        .await
        .unwrap();
    let mut outside = port.accept().await.unwrap();
    converse(&mut inside, &mut outside).await;

    drop(listener);
    crate::lab::until("the socket is gone", || !path.exists()).await;
}

/// A megabyte each way, with each direction closed by itself.
async fn converse<A, B>(inside: &mut A, outside: &mut B)
where
    A: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    B: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let question = vec![b'q'; 1 << 20];
    let answer = vec![b'a'; 1 << 20];
    let (mut heard, mut said) = (Vec::new(), Vec::new());
    let asking = async {
        inside.write_all(&question).await.unwrap();
        inside.shutdown().await.unwrap();
        inside.read_to_end(&mut said).await.unwrap();
    };
    let answering = async {
        outside.read_to_end(&mut heard).await.unwrap();
        outside.write_all(&answer).await.unwrap();
        outside.shutdown().await.unwrap();
    };
    tokio::join!(asking, answering);
    assert!(heard == question && said == answer);
}

#[tokio::test]
async fn a_warden_survives_nonsense() {
    let lab = Lab::new().await;
    let good = lab.warden().await;
    for nonsense in [
        &b"GET / HTTP/1.0\r\n\r\n"[..],
        &[0xff; 4096],
        b"hwardn\0\x63",
    ] {
        let mut stream = lab.stream().await;
        stream.write_all(nonsense).await.unwrap();
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
    }
    for after_hello in [
        vec![0xff; 4096],
        vec![0; 4096],
        yamux_with(&[7; 64]),
        yamux_with(&header(FrameKind::Request, 1 << 20)),
    ] {
        let mut stream = lab.stream().await;
        stream.write_all(&hello::hello()).await.unwrap();
        stream.write_all(&after_hello).await.unwrap();
        let _ = stream.shutdown().await;
        let mut rest = Vec::new();
        let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest)).await;
    }
    assert_eq!(run(&good, sh("echo fine")).await.out, b"fine\n");
    assert!(alive(lab.pid()));
}

/// A stream's first data frame, by hand.
fn yamux_with(body: &[u8]) -> Vec<u8> {
    let mut frame = vec![0, 0, 0, 1, 0, 0, 0, 1];
    frame.extend_from_slice(&u32::try_from(body.len()).unwrap().to_be_bytes());
    frame.extend_from_slice(body);
    frame
}

#[tokio::test]
async fn a_warden_that_lies_loses_its_link() {
    for (reply, what) in [
        (vec![0xff; 4096], "no yamux"),
        (answer(&[99, 0, 0, 0, 0]), "unknown kind"),
        (answer(&[2, 0xff, 0xff, 0xff, 0xff]), "endless reply"),
        (answer(&[2, 0, 0, 0, 1, 0x77]), "malformed reply"),
        (answer(&[21, 0, 0, 0, 1, b'x']), "output for a question"),
    ] {
        let (ours, mut theirs) = tokio::io::duplex(1 << 16);
        theirs.write_all(&hello::hello()).await.unwrap();
        let warden = Warden::greet(ours, PATIENCE).await.unwrap();
        let lying = async {
            let mut question = [0; 64];
            let mut heard = 0;
            // Their hello, yamux's ping, and then the header of the first call.
            while heard < hello::LENGTH + 12 + 12 + 5 {
                heard += theirs.read(&mut question).await.unwrap();
            }
            theirs.write_all(&reply).await.unwrap();
        };
        let asked = tokio::time::timeout(PATIENCE, warden.info());
        let (info, ()) = tokio::join!(asked, lying);
        let info = info.expect(what);
        assert!(
            matches!(
                info,
                Err(WardenCallError::Breach(_) | WardenCallError::LinkLost)
            ),
            "{what}: {info:?}"
        );
        tokio::time::timeout(PATIENCE, warden.closed())
            .await
            .expect(what);
    }
}

/// Data on the stream that the first call opens.
fn answer(frame: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 0, 0, 0, 0, 0, 1];
    bytes.extend_from_slice(&u32::try_from(frame.len()).unwrap().to_be_bytes());
    bytes.extend_from_slice(frame);
    bytes
}

/// Keeps the link and ends every stream as soon as it is opened. Speaks yamux as far as that takes.
async fn end_every_stream(mut link: tokio::io::DuplexStream) -> std::io::Result<()> {
    const SYN: u8 = 1;
    const ACK: u8 = 2;
    const FIN: u8 = 4;
    const PING: u8 = 2;
    let mut greeting = [0; hello::LENGTH];
    link.read_exact(&mut greeting).await?;
    loop {
        let mut header = [0; 12];
        link.read_exact(&mut header).await?;
        let [_, kind, _, flags, a, b, c, d, length @ ..] = header;
        if kind == PING && flags & SYN != 0 {
            header[3] = ACK;
            link.write_all(&header).await?;
        } else if kind == 0 {
            let mut body = vec![0; u32::from_be_bytes(length) as usize];
            link.read_exact(&mut body).await?;
        }
        if kind != PING && flags & SYN != 0 {
            let end = [0, 0, 0, ACK | FIN, a, b, c, d, 0, 0, 0, 0];
            link.write_all(&end).await?;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_warden_that_ends_every_stream_costs_its_own_callers_a_moment() {
    /// What is waited for a link to end whose stream did.
    const MOMENT: Duration = Duration::from_millis(200);
    let (ours, mut theirs) = tokio::io::duplex(1 << 16);
    theirs.write_all(&hello::hello()).await.unwrap();
    let ending = tokio::spawn(end_every_stream(theirs));
    let warden = Warden::greet(ours, PATIENCE).await.unwrap();
    let began = tokio::time::Instant::now();
    let info = warden.info().await;
    assert!(matches!(info, Err(WardenCallError::LinkLost)), "{info:?}");
    assert!(began.elapsed() < 2 * MOMENT, "{:?}", began.elapsed());

    // Many at once wait together, not for each other.
    let began = tokio::time::Instant::now();
    let calls = (0..50).map(|_| {
        let warden = warden.clone();
        tokio::spawn(async move { warden.info().await })
    });
    for call in calls.collect::<Vec<_>>() {
        let info = call.await.unwrap();
        assert!(matches!(info, Err(WardenCallError::LinkLost)), "{info:?}");
    }
    assert!(began.elapsed() < 2 * MOMENT, "{:?}", began.elapsed());
    drop(warden);
    let _ = ending.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_silent_warden_is_not_waited_for() {
    let (ours, _theirs) = tokio::io::duplex(64);
    let greeted = Warden::greet(ours, Duration::from_secs(5)).await;
    assert!(matches!(greeted, Err(GreetError::Silent(_))));
}

#[tokio::test]
async fn it_works_for_an_ordinary_user_and_stays_small() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIP: it_works_for_an_ordinary_user_and_stays_small: needs root to drop from");
        return;
    }
    let lab = Lab::with(&[], Some(1000)).await;
    let warden = lab.warden().await;
    // A file system with large folios may map far more of the file than was touched; memory files, in
    // which sandboxes have it, do not. So one of a few counts, once it has let go of what only its start
    // needed.
    let mut others = Vec::new();
    for _ in 0..4 {
        let lab = Lab::with(&[], Some(1000)).await;
        others.push((lab.warden().await, lab));
    }
    let small = async {
        loop {
            let wardens = others.iter().map(|(other, _)| other);
            for one in wardens.chain([&warden]) {
                if one.info().await.unwrap().rss_bytes <= 2 << 20 {
                    return;
                }
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let small = tokio::time::timeout(PATIENCE, small).await;
    small.expect("a warden keeps more than 2 MiB");
    drop(others);
    let told = run(
        &warden,
        sh("id -u; cat /proc/$PPID/environ; ls /proc/$PPID/fd; kill -0 $PPID && echo kin"),
    )
    .await;
    assert_eq!(told.out, b"1000\nkin\n");
    let shell = hermetic_warden::protocol::ShellRequest::new("main", "id -u");
    assert_eq!(
        crate::lab::told(warden.shell(shell).await.unwrap())
            .await
            .unwrap()
            .out,
        b"1000\n"
    );
}

#[tokio::test]
async fn a_pair_of_pipes_is_as_good_as_a_socket() {
    let lab = Lab::new().await;
    let mut bridge = lab.connect();
    let pipes = tokio::io::join(bridge.stdout.take().unwrap(), bridge.stdin.take().unwrap());
    let warden = Warden::greet(pipes, PATIENCE).await.unwrap();
    let told = run(&warden, sh("head -c 5000000 /dev/zero; echo end >&2")).await;
    assert_eq!((told.out.len(), &*told.err), (5_000_000, &b"end\n"[..]));
    warden.close();
    let ended = tokio::time::timeout(PATIENCE, bridge.wait()).await;
    assert!(
        ended
            .expect("the bridge ends with its link")
            .unwrap()
            .success()
    );
}

#[tokio::test]
async fn a_listing_fits_whatever_was_run() {
    let lab = Lab::new().await;
    let warden = lab.warden().await;
    let long = "x".repeat(100_000);
    for _ in 0..40 {
        let words = ["true", &*long, &*long, &*long];
        run(&warden, hermetic_warden::protocol::RunRequest::new(words)).await;
    }
    let runs = warden.runs().await.unwrap();
    assert!((32..=40).contains(&runs.len()), "{}", runs.len());
}

/// Frozen from outside, with a command in it.
#[tokio::test]
async fn a_warden_that_stops_answering_is_left() {
    let lab = Lab::new().await;
    let warden = lab.warden().await;
    let mut running = warden.run(sh("sleep 1000")).await.unwrap();
    running.next().await.unwrap();
    kill_process(Pid::from_raw(lab.pid() as i32).unwrap(), Signal::STOP).unwrap();
    // From here on minutes go by as fast as nothing happens.
    tokio::time::pause();
    assert!(matches!(
        running.next().await,
        Err(WardenCallError::LinkLost)
    ));
    assert!(warden.is_closed());
}
