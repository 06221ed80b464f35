//! A hostile warden: whatever it sends, the gateway's side neither panics nor waits for ever.

#![no_main]

use std::time::Duration;

use hermetic_types::HolderEpoch;
use hermetic_warden::client::Warden;
use hermetic_warden::protocol::{ListenEndpoint, PathAt, ReadRequest, ResolveRequest, RunRequest, hello};
use libfuzzer_sys::fuzz_target;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

fuzz_target!(|bytes: &[u8]| {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime can be had");
    runtime.block_on(async {
        let (ours, mut theirs) = tokio::io::duplex(1 << 20);
        let hostile = async {
            let _ = theirs.write_all(&hello::hello()).await;
            let _ = theirs.write_all(bytes).await;
            drop(theirs);
        };
        let calls = async {
            let Ok(warden) = Warden::greet(ours, Duration::from_secs(1)).await else {
                return;
            };
            let _ = warden.hold(HolderEpoch::new(3)).await;
            if let Ok(mut running) = warden.run(RunRequest::new(["true"])).await {
                while let Ok(Some(_)) = running.next().await {}
            }
            let _ = warden.runs().await;
            if let Ok(file) = warden.read_file(ReadRequest::whole(PathAt::anywhere("/"))).await {
                let _ = file.collect(1 << 20).await;
            }
            let resolve = ResolveRequest {
                path: "file".into(),
                shell: None,
            };
            let _ = warden.resolve(resolve).await;
            let _ = warden.listen(ListenEndpoint::Tcp(0), 1).await;
        };
        let both = async { tokio::join!(hostile, calls) };
        timeout(Duration::from_secs(10), both)
            .await
            .expect("a closed link ends every call");
    });
});
