//! Calls that delete, judged as `rm` is.

use super::super::ScriptWalker;
use super::super::literals::CodeToken;
use super::calls::CodeCall;
use super::{names, vocabulary};
use crate::text::{ExpandedText, TaintSet};

impl ScriptWalker<'_> {
    pub(super) fn deletes(&mut self, call: &CodeCall<'_>) {
        let (name, inner) = (call.name, call.inner);
        let target = inner.iter().take(64).find_map(|token| match token {
            CodeToken::Text(text) => Some(self.with_home(text)),
            _ => None,
        });
        let literal = matches!(inner.first(), Some(CodeToken::Text(_)));
        if vocabulary::deletes_tree(name)
            && target.is_none()
            && let Some(each) = named_in_a_loop(call)
        {
            for path in each.into_iter().take(8) {
                let path = self.with_home(path);
                self.removes("-rf", ExpandedText::known(path));
            }
            return;
        }
        // Perl's `finddepth(sub { unlink }, "/")`.
        if matches!(name, "finddepth" | "find")
            && call.language == "perl"
            && names(inner, 24).any(|name| matches!(name, "unlink" | "rmdir" | "rmtree"))
        {
            let target = target.map_or_else(
                || ExpandedText::unknown(TaintSet::NONE),
                ExpandedText::known,
            );
            return self.removes("-rf", target);
        }
        if vocabulary::deletes_tree(name) && (call.called || call.language == "ruby") {
            // `rmSync(require("os").homedir())`: the text is the name of a module.
            let target = target.filter(|text| text != "os" && text != "node:os");
            let target = match target {
                Some(target) => ExpandedText::known(target),
                None => self
                    .home_call(inner)
                    .unwrap_or_else(|| ExpandedText::unknown(TaintSet::NONE)),
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
                self.removes("-f", ExpandedText::known(target));
            } else if let Some(folder) = self.listed_folder(call) {
                self.removes("-rf", ExpandedText::known(folder));
            } else if let [
                ..,
                CodeToken::Mark('('),
                CodeToken::Text(path),
                CodeToken::Mark(')'),
                CodeToken::Mark('.'),
            ] = call.before
            {
                // `Path('…').unlink()`.
                self.removes("-f", ExpandedText::known(self.with_home(path)));
            }
        }
    }

    fn removes(&mut self, flag: &str, target: ExpandedText) {
        self.amounts_to(vec![
            ExpandedText::known("rm"),
            ExpandedText::known(flag),
            target,
        ]);
    }

    /// A name out of a listing is any file of that folder: `unlink(f) for f in listdir('…')`.
    fn listed_folder(&self, call: &CodeCall<'_>) -> Option<String> {
        let near = call.before.len().saturating_sub(48);
        let before = listed(&call.before[near..]);
        let inner = &call.inner[..call.inner.len().min(48)];
        let folder = listed(inner).or(before)?;
        let folder = match rooted(&call.before[near..]).or_else(|| rooted(inner)) {
            Some(root) if !folder.starts_with('/') => root,
            _ => folder,
        };
        let folder = self.with_home(folder);
        Some(if folder.contains(['*', '?']) {
            folder
        } else {
            format!("{}/*", folder.trim_end_matches('/'))
        })
    }

    /// `expanduser('~')`, `Path.home()`, `os.homedir()`.
    fn home_call(&self, inner: &[CodeToken]) -> Option<ExpandedText> {
        names(inner, 9)
            .any(|name| matches!(name, "home" | "homedir" | "HOME"))
            .then(|| ExpandedText::known(self.context.home.clone()))
    }
}

fn is_name(token: &CodeToken, expected: &str) -> bool {
    matches!(token, CodeToken::Name(name) if name == expected)
}

/// The folder that a call such as `listdir` is given.
fn listed(tokens: &[CodeToken]) -> Option<&str> {
    let at = tokens
        .iter()
        .position(|token| matches!(token, CodeToken::Name(name) if vocabulary::lists(name)))?;
    tokens[at + 1..]
        .iter()
        .take(2)
        .find_map(|token| match token {
            CodeToken::Text(text) => Some(text.as_str()),
            _ => None,
        })
}

/// `Path("/").rglob("*")`: the folder that a listing begins at.
fn rooted(tokens: &[CodeToken]) -> Option<&str> {
    tokens.windows(4).find_map(|four| match four {
        [
            CodeToken::Text(root),
            CodeToken::Mark(')'),
            CodeToken::Mark('.'),
            CodeToken::Name(name),
        ] if vocabulary::lists(name) && root.starts_with(['/', '~']) => Some(root.as_str()),
        _ => None,
    })
}

/// `for d in ("/etc", "/usr"): rmtree(d)`: the texts that the name goes through.
fn named_in_a_loop<'t>(call: &CodeCall<'t>) -> Option<Vec<&'t str>> {
    let Some(CodeToken::Name(wanted)) = call.inner.first() else {
        return None;
    };
    let at = call.before.windows(3).rposition(|three| {
        matches!(three, [CodeToken::Name(each), CodeToken::Name(name), CodeToken::Name(within)]
            if each == "for" && within == "in" && name == wanted)
    })?;
    let texts: Vec<&str> = call.before[at + 3..]
        .iter()
        .take_while(|token| matches!(token, CodeToken::Text(_) | CodeToken::Mark('(' | '[' | ',')))
        .filter_map(|token| match token {
            CodeToken::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    (!texts.is_empty()).then_some(texts)
}
