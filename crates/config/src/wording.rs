//! Other people's words inside our messages.

/// Somebody else's text, fit to stand inside a message.
pub(crate) fn short(text: &str) -> String {
    cut(text, 48)
}

/// A dotted name of somebody else's, fit to be listed.
pub(crate) fn short_path(path: &str) -> String {
    cut(path, 120)
}

fn cut(text: &str, longest: usize) -> String {
    let mut shown: String = text
        .chars()
        .take(longest)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    if text.chars().nth(longest).is_some() {
        shown.push('…');
    }
    shown
}
