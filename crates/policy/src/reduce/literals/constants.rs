//! Constants followed to where they are used: `c = "rm"; system(c)`, `from os import system as s`.

use std::collections::HashMap;

use super::CodeToken;

/// The tokens with constants and other names for the same thing filled in.
pub(super) fn filled_in(tokens: Vec<CodeToken>) -> Vec<CodeToken> {
    let (texts, names) = known(&tokens);
    if texts.is_empty() && names.is_empty() {
        return tokens;
    }
    let mut out: Vec<CodeToken> = Vec::with_capacity(tokens.len());
    for (at, token) in tokens.iter().enumerate() {
        let CodeToken::Name(name) = token else {
            out.push(token.clone());
            continue;
        };
        let assigned = matches!(tokens.get(at + 1), Some(CodeToken::Mark('=')));
        let member = matches!(out.last(), Some(CodeToken::Mark('.')));
        match (texts.get(name.as_str()), names.get(name.as_str())) {
            (Some(text), _) if !assigned && !member => {
                // Perl's and PHP's `$name`.
                if matches!(out.last(), Some(CodeToken::Mark('$'))) {
                    out.pop();
                }
                out.push(CodeToken::Text((*text).to_owned()));
            }
            (_, Some(meant)) if !assigned => out.push(CodeToken::Name((*meant).to_owned())),
            _ => out.push(token.clone()),
        }
    }
    out
}

/// Names that are given a constant once, and names that stand for another.
fn known(tokens: &[CodeToken]) -> (HashMap<&str, &str>, HashMap<&str, &str>) {
    let (mut texts, mut names) = (HashMap::new(), HashMap::new());
    let mut twice = Vec::new();
    for window in tokens.windows(4) {
        match window {
            [
                CodeToken::Name(name),
                CodeToken::Mark('='),
                CodeToken::Text(text),
                after,
            ] if !matches!(after, CodeToken::Mark('+' | '.' | '%' | '['))
                && texts.insert(name.as_str(), text.as_str()).is_some() =>
            {
                twice.push(name.as_str());
            }
            [
                _,
                CodeToken::Name(meant),
                CodeToken::Mark(':'),
                CodeToken::Name(name),
            ] if meant.starts_with("exec") || meant.starts_with("spawn") => {
                names.insert(name.as_str(), meant.as_str());
            }
            [
                _,
                CodeToken::Name(meant),
                CodeToken::Name(r#as),
                CodeToken::Name(name),
            ] if r#as == "as" => {
                names.insert(name.as_str(), meant.as_str());
            }
            _ => {}
        }
    }
    for name in twice {
        texts.remove(name);
    }
    (texts, names)
}
