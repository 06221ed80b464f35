//! "Did you mean …?"

/// The known name that `name` is most likely a slip of, if any is near enough.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = plain(name);
    known
        .into_iter()
        .filter(|candidate| candidate.len().abs_diff(name.len()) <= UNDERSCORES)
        .filter_map(|candidate| {
            let distance = strsim::osa_distance(&name, &plain(candidate));
            (distance <= tolerance(candidate)).then_some((distance, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// A name this much longer or shorter cannot be near, and measuring is slow.
const UNDERSCORES: usize = 8;

/// Short words are near to everything, so they get less.
fn tolerance(candidate: &str) -> usize {
    match candidate.len() {
        0..=2 => 0,
        3..=5 => 1,
        _ => 2,
    }
}

/// `Terminal-Backend` and `terminalBackend` are slips of `terminal_backend` at no distance.
fn plain(name: &str) -> String {
    name.chars()
        .filter(|c| !matches!(c, '_' | '-' | ' ' | '.'))
        .take(64)
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_other_words_are_not() {
        let known = ["backend", "timeout", "cwd", "docker_image"];
        for (name, expected) in [
            ("bakend", Some("backend")),
            ("BACKEND", Some("backend")),
            ("timoeut", Some("timeout")),
            ("docker-image", Some("docker_image")),
            ("dockerImage", Some("docker_image")),
            ("cdw", Some("cwd")),
            ("color", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, known), expected, "{name}");
        }
    }
}
