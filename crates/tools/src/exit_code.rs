//! Exit codes that look like a failure and are none, or that say what kind of failure it was.

/// What the code of this program means, where that helps to go on.
pub(crate) fn meaning(program: &str, code: i32) -> Option<&'static str> {
    Some(match (program, code) {
        ("grep" | "egrep" | "fgrep" | "zgrep" | "rg" | "ag" | "ack", 1) => {
            "No matches found (not an error)"
        }
        ("diff" | "colordiff" | "cmp", 1) => "Files differ (not an error)",
        ("find", 1) => "Some directories could not be read; what was found is still valid",
        ("test" | "[" | "[[", 1) => "The condition is false (not an error)",
        ("curl", 6) => "The host name could not be resolved",
        ("curl", 7) => "The connection failed",
        ("curl", 22) => "The server answered with an HTTP error",
        ("curl", 28) => "The operation timed out",
        ("git", 1) => "Often no error: git diff, for one, exits with 1 when files differ",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_codes_that_mean_something_have_a_meaning() {
        assert!(meaning("grep", 1).is_some());
        assert_eq!(meaning("grep", 2), None);
        assert_eq!(meaning("curl", 0), None);
        assert_eq!(meaning("make", 1), None);
    }
}
