//! The bytes of a file as they come from a platform.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, Stream, StreamExt};
use tokio::time::timeout;

use crate::{AttachmentStream, DownloadError};

/// A download that says nothing for so long has ended.
pub const DOWNLOAD_STALL: Duration = Duration::from_secs(60);

/// At most `limit` bytes, whatever was announced, and no pause without end. Ends at the first error.
///
/// The errors of `chunks` are shown to people and written to the log, so they hold no address with a token.
pub fn bounded_download<E: Error + Send + Sync + 'static>(
    chunks: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    limit: u64,
) -> AttachmentStream {
    stream::unfold(Some((chunks.boxed(), limit)), move |state| async move {
        let (mut chunks, left) = state?;
        let chunk = match timeout(DOWNLOAD_STALL, chunks.next()).await {
            Ok(None) => return None,
            Ok(Some(Ok(chunk))) => chunk,
            Ok(Some(Err(error))) => {
                return Some((Err(DownloadError::Failed(Box::new(error))), None));
            }
            Err(stalled) => return Some((Err(DownloadError::Failed(Box::new(stalled))), None)),
        };
        // The piece that goes too far is not handed on, and nothing after it: whoever writes never
        // has more than the limit.
        match left.checked_sub(chunk.len() as u64) {
            Some(left) => Some((Ok(chunk), Some((chunks, left)))),
            None => Some((Err(DownloadError::TooLarge { limit }), None)),
        }
    })
    .boxed()
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[tokio::test]
    async fn what_is_beyond_the_limit_ends_it() {
        let chunks =
            stream::iter([4, 4, 4]).map(|size| Ok::<_, io::Error>(Bytes::from(vec![7; size])));
        let got: Vec<_> = bounded_download(chunks, 10).collect().await;
        assert_eq!(got.len(), 3);
        assert!(matches!(got[2], Err(DownloadError::TooLarge { limit: 10 })));
    }

    #[tokio::test(start_paused = true)]
    async fn silence_ends_it() {
        let chunks = stream::pending::<Result<Bytes, io::Error>>();
        let got: Vec<_> = bounded_download(chunks, 10).collect().await;
        assert!(matches!(got[..], [Err(DownloadError::Failed(_))]));
    }
}
