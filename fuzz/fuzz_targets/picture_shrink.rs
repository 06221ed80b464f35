//! Any bytes as a picture: what comes out is a small JPEG, or a word of why not.

#![no_main]

use std::sync::LazyLock;

use hermetic_pictures::{PictureScaler, media_type};
use libfuzzer_sys::fuzz_target;
use tokio::runtime::Runtime;

const MOST: usize = 64 << 10;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime can be had")
});

fuzz_target!(|bytes: &[u8]| {
    let is_known = media_type(bytes).is_some();
    let scaler = PictureScaler::default();
    let shrunk = RUNTIME.block_on(async {
        let slot = scaler.reading_slot().await;
        scaler.shrink(bytes.to_vec(), MOST, slot).await
    });
    if let Ok(small) = shrunk {
        assert!(
            is_known,
            "what is no picture by its first bytes was read as one"
        );
        assert!(small.bytes.len() <= MOST && small.is.0.max(small.is.1) <= 1568);
        assert_eq!(media_type(&small.bytes), Some("image/jpeg"));
    }
});
