//! Our certificate among those an image trusts, for programs that look nowhere else.
//!
//! It goes into the layer that the warden is in, so the image itself stays as it is. Where an image
//! trusts nobody, variables are all there is.

use bollard::errors::Error;
use bollard::query_parameters::{
    DownloadFromContainerOptionsBuilder, UploadToContainerOptionsBuilder,
};
use bollard::{Docker, body_full};
use futures::StreamExt;

use crate::archive;
use crate::engine::status;

/// Where Debian and Fedora keep all certificates in one file.
const BUNDLES: [&str; 2] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
];
/// More than any bundle has.
const MOST_BUNDLE_BYTES: usize = 8 << 20;
/// As many links as lead to a bundle anywhere.
const MOST_LINKS: usize = 4;

/// In a container that was never started.
pub(crate) async fn extend(docker: &Docker, container: &str, authority: &str) -> Result<(), Error> {
    for bundle in BUNDLES {
        let Some((path, mut trusted)) = follow(docker, container, bundle).await? else {
            continue;
        };
        if trusted
            // There already, as in an image that was made of one of ours: twice would make the
            // layer larger and nothing else.
            .windows(authority.len())
            .any(|part| part == authority.as_bytes())
        {
            continue;
        }
        trusted.push(b'\n');
        trusted.extend_from_slice(authority.as_bytes());
        let options = UploadToContainerOptionsBuilder::new()
            .path(archive::ROOT)
            .build();
        let tar = archive::one_file(path.trim_start_matches('/'), &trusted);
        docker
            .upload_to_container(container, Some(options), body_full(tar))
            .await?;
    }
    Ok(())
}

/// The file that a path comes to, with its content.
async fn follow(
    docker: &Docker,
    container: &str,
    path: &str,
) -> Result<Option<(String, Vec<u8>)>, Error> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Some(tar) = fetch(docker, container, &path).await? else {
            return Ok(None);
        };
        match archive::first(&tar) {
            Some(archive::ArchiveEntry::File(content)) => {
                return Ok(Some((path, content.to_vec())));
            }
            Some(archive::ArchiveEntry::Link(target)) => path = join(&path, &target),
            None => return Ok(None),
        }
    }
    Ok(None)
}

async fn fetch(docker: &Docker, container: &str, path: &str) -> Result<Option<Vec<u8>>, Error> {
    let options = DownloadFromContainerOptionsBuilder::new()
        .path(path)
        .build();
    let mut stream = std::pin::pin!(docker.download_from_container(container, Some(options)));
    let mut tar = Vec::new();
    while let Some(part) = stream.next().await {
        match part {
            Ok(part) if tar.len() + part.len() <= MOST_BUNDLE_BYTES => tar.extend_from_slice(&part),
            Ok(_) => return Ok(None),
            Err(error) if status(&error) == Some(404) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(Some(tar))
}

/// Where a link leads, seen from its own folder.
fn join(link: &str, target: &str) -> String {
    let folder = link.rsplit_once('/').map_or("", |(folder, _)| folder);
    let whole = if target.starts_with('/') {
        target.to_owned()
    } else {
        format!("{folder}/{target}")
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            // Worked out by us and within the image: the engine would follow such a link on its own
            // machine.
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_as_the_image_means_them() {
        let link = "/etc/pki/tls/certs/ca-bundle.crt";
        let real = "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem";
        assert_eq!(
            join(link, "../../ca-trust/extracted/pem/tls-ca-bundle.pem"),
            real
        );
        assert_eq!(join(link, real), real);
        assert_eq!(join(link, "../../../../../../x"), "/x");
    }
}
