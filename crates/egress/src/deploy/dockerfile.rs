//! The image all services of a compose file share.

/// Expects the binary beside it. Nothing is fetched but the base image and its certificates.
pub fn dockerfile() -> &'static str {
    DOCKERFILE
}

const DOCKERFILE: &str = r#"# Written by `hermetic compose`. Build it with: docker build -t hermetic .
FROM debian:12-slim

RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home --uid 1000 hermetic

COPY hermetic /usr/local/bin/hermetic

USER hermetic
WORKDIR /home/hermetic
ENTRYPOINT ["hermetic"]
CMD ["gateway", "run"]
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_does_not_run_as_root() {
        let lines: Vec<&str> = dockerfile().lines().collect();
        let user = lines.iter().position(|line| *line == "USER hermetic");
        let entry = lines.iter().position(|line| line.starts_with("ENTRYPOINT"));
        assert!(user.is_some() && user < entry, "{lines:?}");
    }
}
