//! Streams whose bytes lie in memory, as those out of a warden do: passed on from where they are.

use hermetic_egress::{EgressLimits, RulesText};
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::time::timeout;

use crate::lab::origin::Origin;
use crate::lab::{Lab, Setup, TEST_TIMEOUT, read_head};

/// A tunnel to `origin` through a stream of that kind.
async fn tunnel(lab: &Lab, origin: &Origin) -> DuplexStream {
    let (mut ours, theirs) = tokio::io::duplex(64 * 1024);
    let (proxy, conversation, stop) = (
        lab.proxy.clone(),
        lab.conversation.clone(),
        lab.stop.clone(),
    );
    tokio::spawn(async move {
        let inside = BufReader::with_capacity(10_000, theirs);
        proxy.handle_buffered(inside, conversation, stop).await;
    });
    let connect = format!("CONNECT plain.test:{} HTTP/1.1\r\n\r\n", origin.at.port());
    ours.write_all(connect.as_bytes()).await.unwrap();
    let head = read_head(&mut ours).await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    ours
}

fn lab(origin: &Origin, limits: EgressLimits) -> Lab {
    let rule = format!("tcp://plain.test:{} in 127.0.0.0/8", origin.at.port());
    Lab::new(Setup {
        rules: RulesText::allowing([rule]),
        limits,
        ..Setup::default()
    })
}

#[tokio::test]
async fn every_byte_arrives_in_order_and_is_counted_once() {
    const LENGTH: usize = 3_000_001;
    let origin = Origin::echo().await;
    let lab = lab(&origin, EgressLimits::default());
    let (mut reader, mut writer) = tokio::io::split(tunnel(&lab, &origin).await);
    let said: Vec<u8> = (0..251).cycle().take(LENGTH).collect();
    let sent = said.clone();
    let writing = tokio::spawn(async move {
        writer.write_all(&sent).await.unwrap();
        writer.shutdown().await.unwrap();
    });
    let mut heard = Vec::new();
    timeout(TEST_TIMEOUT, reader.read_to_end(&mut heard))
        .await
        .expect("the tunnel hangs")
        .unwrap();
    writing.await.unwrap();
    assert!(heard == said);
    let entry = timeout(TEST_TIMEOUT, async {
        loop {
            if let Some(entry) = lab.journal.entries().pop() {
                return entry;
            }
            tokio::task::yield_now().await;
        }
    });
    let entry = entry.await.expect("nothing was written down");
    assert_eq!(
        (entry.bytes_up, entry.bytes_down),
        (LENGTH as u64, LENGTH as u64)
    );
}

#[tokio::test]
async fn not_one_byte_passes_beyond_the_budget() {
    let origin = Origin::echo().await;
    let limits = EgressLimits {
        budget: Some(100_000),
        ..EgressLimits::default()
    };
    let lab = lab(&origin, limits);
    let mut stream = tunnel(&lab, &origin).await;
    let mut heard = Vec::new();
    let (mut reader, mut writer) = tokio::io::split(&mut stream);
    let writing = async {
        // The tunnel ends in the middle of it.
        let _ = writer.write_all(&[7; 400_000]).await;
    };
    let reading = timeout(TEST_TIMEOUT, reader.read_to_end(&mut heard));
    let (ended, ()) = tokio::join!(reading, writing);
    ended.expect("the tunnel goes on").unwrap();
    assert!(heard.len() < 100_000, "{}", heard.len());
}
