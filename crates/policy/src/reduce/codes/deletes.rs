//! Calls that delete, judged as `rm` is.

use super::super::Walker;
use super::super::literals::Token;
use super::calls::Call;
use super::{names, vocabulary};
use crate::text::{Taint, Text};

impl Walker<'_> {
    pub(super) fn deletes(&mut self, call: &Call<'_>) {
        let (name, inner) = (call.name, call.inner);
        let target = inner.iter().take(64).find_map(|token| match token {
            Token::Text(text) => Some(self.with_home(text)),
            _ => None,
        });
        let literal = matches!(inner.first(), Some(Token::Text(_)));
        if vocabulary::deletes_tree(name) && (call.called || call.language == "ruby") {
            let target = match target {
                Some(target) => Text::known(target),
                None => self
                    .home_call(inner)
                    .unwrap_or_else(|| Text::unknown(Taint::NONE)),
            };
            let asks = !matches!(name, "rm" | "rmSync");
            let recursive = asks
                || inner
                    .iter()
                    .take(64)
                    .any(|token| is_name(token, "recursive"));
            self.removes(if recursive { "-rf" } else { "-f" }, target);
        } else if vocabulary::deletes_file(name) {
            if let Some(target) = target.filter(|_| literal && call.called) {
                self.removes("-f", Text::known(target));
            } else if let Some(folder) = self.listed_folder(call) {
                self.removes("-rf", Text::known(folder));
            } else if let [
                ..,
                Token::Mark('('),
                Token::Text(path),
                Token::Mark(')'),
                Token::Mark('.'),
            ] = call.before
            {
                // `Path('…').unlink()`.
                self.removes("-f", Text::known(self.with_home(path)));
            }
        }
    }

    fn removes(&mut self, flag: &str, target: Text) {
        self.amounts_to(vec![Text::known("rm"), Text::known(flag), target]);
    }

    /// A name out of a listing is any file of that folder: `unlink(f) for f in listdir('…')`.
    fn listed_folder(&self, call: &Call<'_>) -> Option<String> {
        let near = call.before.len().saturating_sub(48);
        let before = listed(&call.before[near..]);
        let inner = &call.inner[..call.inner.len().min(48)];
        let folder = listed(inner).or(before)?;
        let folder = self.with_home(folder);
        Some(if folder.contains(['*', '?']) {
            folder
        } else {
            format!("{}/*", folder.trim_end_matches('/'))
        })
    }

    /// `expanduser('~')`, `Path.home()`, `os.homedir()`.
    fn home_call(&self, inner: &[Token]) -> Option<Text> {
        names(inner, 6)
            .any(|name| matches!(name, "home" | "homedir" | "HOME"))
            .then(|| Text::known(self.context.home.clone()))
    }
}

fn is_name(token: &Token, expected: &str) -> bool {
    matches!(token, Token::Name(name) if name == expected)
}

/// The folder that a call such as `listdir` is given.
fn listed(tokens: &[Token]) -> Option<&str> {
    let at = tokens
        .iter()
        .position(|token| matches!(token, Token::Name(name) if vocabulary::lists(name)))?;
    tokens[at + 1..]
        .iter()
        .take(2)
        .find_map(|token| match token {
            Token::Text(text) => Some(text.as_str()),
            _ => None,
        })
}
