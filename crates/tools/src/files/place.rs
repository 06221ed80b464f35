//! From the path a model writes to the place it leads to.

use hermetic_warden::protocol::{ByteString, FileKind, FileMetadata, FileVersion};

use super::file_session::FileSession;
use super::{FileToolFailure, similar};

/// Where a path leads.
#[derive(Clone, Debug)]
pub(super) struct ResolvedPath {
    /// As the model wrote it.
    pub(super) asked: String,
    /// The real one, without symlinks.
    pub(super) path: ByteString,
    /// How many names at its end do not exist.
    pub(super) missing: u32,
    pub(super) metadata: Option<FileMetadata>,
}

impl ResolvedPath {
    /// The real path, to be read.
    pub(super) fn shown(&self) -> String {
        String::from_utf8_lossy(&self.path.0).into_owned()
    }

    pub(super) fn exists(&self) -> bool {
        self.metadata.is_some()
    }

    pub(super) fn stamp(&self) -> Option<FileVersion> {
        self.metadata.as_ref().map(FileMetadata::stamp)
    }

    /// The folder that would hold it.
    pub(super) fn folder(&self) -> ByteString {
        let path = &self.path.0;
        let end = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        ByteString(path[..end.max(1)].to_vec())
    }

    pub(super) fn name(&self) -> String {
        let name = self.path.0.rsplit(|byte| *byte == b'/').next();
        String::from_utf8_lossy(name.unwrap_or_default()).into_owned()
    }
}

impl FileSession<'_> {
    /// Where a path leads, if that is a file or nothing at all.
    pub(super) async fn locate(&self, path: &str) -> Result<ResolvedPath, FileToolFailure> {
        let place = self.follow(path).await?;
        match place.metadata.as_ref().map(|metadata| metadata.kind) {
            None | Some(FileKind::File) => Ok(place),
            Some(FileKind::Directory) => Err(FileToolFailure::new(format!(
                "{path} is a folder, not a file; search_files with target=files lists one"
            ))),
            Some(_) => Err(FileToolFailure::new(format!(
                "{path} is a device, a socket or a pipe, not a file"
            ))),
        }
    }

    /// As [`locate`](Self::locate), for a file that must be there.
    pub(super) async fn locate_existing(
        &self,
        path: &str,
    ) -> Result<ResolvedPath, FileToolFailure> {
        let place = self.locate(path).await?;
        if place.exists() {
            return Ok(place);
        }
        let similar = similar::names(self, &place).await;
        let failed = FileToolFailure::new(format!("File not found: {path}"));
        Err(if similar.is_empty() {
            failed
        } else {
            failed.with("similar_files", similar)
        })
    }

    /// Where a path leads, whatever is there.
    pub(super) async fn follow(&self, path: &str) -> Result<ResolvedPath, FileToolFailure> {
        let resolved = self.sandbox.resolve(path).await;
        let resolved = resolved.map_err(|error| FileToolFailure::at(path, &error))?;
        if is_about_a_process(&resolved.path.0) {
            return Err(FileToolFailure::new(format!(
                "{path}: what /proc tells about a process differs by who asks; use the terminal"
            )));
        }
        Ok(ResolvedPath {
            asked: path.to_owned(),
            path: resolved.path,
            missing: resolved.missing,
            metadata: resolved.metadata,
        })
    }
}

/// `/proc/self` would be the warden, whose memory and environment are nobody's business.
fn is_about_a_process(path: &[u8]) -> bool {
    let Some(rest) = path.strip_prefix(b"/proc/") else {
        return false;
    };
    rest.first().is_some_and(u8::is_ascii_digit)
        || rest.starts_with(b"self")
        || rest.starts_with(b"thread-self")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_and_the_name() {
        let place = |path: &str| ResolvedPath {
            asked: path.to_owned(),
            path: path.into(),
            missing: 0,
            metadata: None,
        };
        assert_eq!(place("/a/b").folder(), "/a".into());
        assert_eq!(place("/a").folder(), "/".into());
        assert_eq!(place("/a/b.txt").name(), "b.txt");
    }

    #[test]
    fn processes_are_not_files() {
        assert!(is_about_a_process(b"/proc/1/environ"));
        assert!(is_about_a_process(b"/proc/self/mem"));
        assert!(!is_about_a_process(b"/proc/meminfo"));
        assert!(!is_about_a_process(b"/process/1"));
    }
}
