//! `?` for SQLite, `$1` for PostgreSQL.

/// The text with PostgreSQL's placeholders: `?` becomes the next number, `?3` becomes `$3`. What stands in
/// quotes stays.
pub(super) fn numbered(sql: &str) -> String {
    let mut text = String::with_capacity(sql.len() + 16);
    let mut next = 0_u32;
    let mut quote = None;
    let mut rest = sql.chars().peekable();
    while let Some(character) = rest.next() {
        match (quote, character) {
            (Some(open), _) => {
                text.push(character);
                if character == open {
                    quote = None;
                }
            }
            (None, '\'' | '"') => {
                text.push(character);
                quote = Some(character);
            }
            (None, '?') => {
                text.push('$');
                let has_number = rest.peek().is_some_and(char::is_ascii_digit);
                if !has_number {
                    next += 1;
                    text.push_str(&next.to_string());
                }
            }
            (None, _) => text.push(character),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_get_numbers_and_quotes_are_left_alone() {
        for (ours, theirs) in [
            ("a = ? AND b = ?", "a = $1 AND b = $2"),
            ("a = ?2 OR b = ?1", "a = $2 OR b = $1"),
            ("a = '?' AND \"?\" = ?", "a = '?' AND \"?\" = $1"),
            ("a = 'it''s ?' AND b = ?", "a = 'it''s ?' AND b = $1"),
        ] {
            assert_eq!(numbered(ours), theirs);
        }
    }
}
