//! Websockets, in the open and over TLS.

use futures::{SinkExt, StreamExt};
use hermetic_egress::ByteStream;

use super::{LONG, find, library, listen, out};
use crate::lab::local;
use crate::lab::origin::Origin;
use crate::lab::tls::Identity;

/// Says everything back, until the client says goodbye.
async fn echo(stream: impl ByteStream) {
    let Ok(mut socket) = tokio_tungstenite::accept_async(stream).await else {
        return;
    };
    while let Some(Ok(message)) = socket.next().await {
        if (message.is_text() || message.is_binary()) && socket.send(message).await.is_err() {
            return;
        }
    }
}

/// A short message, a long one, and a goodbye, each way.
const TALK: &str = "
import asyncio, sys, aiohttp
async def main():
    async with aiohttp.ClientSession(trust_env=True) as session:
        for url in sys.argv[1:]:
            async with session.ws_connect(url) as socket:
                for text in ['hello', 'x' * 200000]:
                    await socket.send_str(text)
                    assert (await socket.receive_str()) == text
            print('said', url.split(':')[0])
asyncio.run(main())
";

#[tokio::test]
async fn aiohttp_talks_over_websockets() {
    let test = "aiohttp_talks_over_websockets";
    let Some(python) = find(test, "python3") else {
        return;
    };
    let Some(path) = library(test, &python, "aiohttp").await else {
        return;
    };
    let identity = Identity::of("secure.test");
    let plain = Origin::start(echo).await;
    let secure = identity.serve(echo).await;
    let rules = [
        local("plain.test", plain.at),
        local("secure.test", secure.at),
    ];
    let proxy = listen(&rules, Vec::new(), Some(&identity)).await;
    let urls = [
        format!("ws://plain.test:{}/", plain.at.port()),
        format!("wss://secure.test:{}/", secure.at.port()),
    ];
    let words = ["-c", TALK, &urls[0], &urls[1]];
    let said = proxy
        .run_with(&[("PYTHONPATH", &path)], LONG, &python, &words)
        .await;
    assert_eq!(out(&said), "said ws\nsaid wss\n");
    let words = ["-c", TALK, "wss://evil.test/"];
    let refused = proxy
        .run_with(&[("PYTHONPATH", &path)], LONG, &python, &words)
        .await;
    assert!(out(&refused).contains("403"), "{}", out(&refused));
}
