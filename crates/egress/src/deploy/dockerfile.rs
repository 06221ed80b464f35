//! The image all services of a compose file share.

/// Whom the image's services run as where nobody else was named.
const USER: (u32, u32) = (1000, 1000);

/// Expects the binary beside it. Nothing is fetched but the base image, its certificates and the Python that
/// `execute_code` and `/py` run on: a native sandbox shows what the image has.
pub fn dockerfile(user: Option<(u32, u32)>) -> String {
    let (user, group) = user.unwrap_or(USER);
    DOCKERFILE
        .replace("@USER@", &user.to_string())
        .replace("@GROUP@", &group.to_string())
}

/// The folder of the volume is made here: a volume takes its owner from the image, and is root's where the
/// image has no such folder.
const DOCKERFILE: &str = r#"# Written by `hermetic compose`. Build it with: docker build -t hermetic .
FROM debian:12-slim

RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates python3 \
 && rm -rf /var/lib/apt/lists/* \
 && groupadd --non-unique --gid @GROUP@ hermetic \
 && useradd --non-unique --create-home --uid @USER@ --gid @GROUP@ hermetic \
 && install -d -m 700 -o @USER@ -g @GROUP@ /home/hermetic/.hermes

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
        let text = dockerfile(None);
        let lines: Vec<&str> = text.lines().collect();
        let user = lines.iter().position(|line| *line == "USER hermetic");
        let entry = lines.iter().position(|line| line.starts_with("ENTRYPOINT"));
        assert!(user.is_some() && user < entry, "{lines:?}");
    }

    #[test]
    fn code_can_be_run_in_it() {
        assert!(dockerfile(None).contains(" python3 "));
    }

    #[test]
    fn the_volumes_folder_belongs_to_whoever_runs() {
        let text = dockerfile(Some((1234, 56)));
        assert!(
            text.contains("-o 1234 -g 56 /home/hermetic/.hermes"),
            "{text}"
        );
        assert!(!text.contains('@'), "{text}");
    }
}
