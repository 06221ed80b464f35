//! What is known about models: their context and their price, from a table that a person can edit.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use hermetic_agent::{NanoDollars, TokenPrice};
use hermetic_config::HomeFolder;

use crate::AppFailure;

/// The table: ours, and over it the lines of the file in the home.
#[derive(Clone, Debug)]
pub struct ModelCatalog {
    entries: BTreeMap<String, CatalogEntry>,
}

/// What is known about a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CatalogEntry {
    /// Tokens that it can see.
    pub context_length: Option<u32>,
    pub price: Option<TokenPrice>,
}

const OURS: &str = include_str!("models.txt");

impl ModelCatalog {
    /// The name of the file in the home.
    pub const FILE: &str = "models.txt";

    /// The table with what the file of a home says.
    pub fn of_home(home: &HomeFolder) -> Result<Self, AppFailure> {
        Self::with_file(&home.root().join(Self::FILE))
    }

    /// The table with the lines of this file over it. No file is no lines; one that cannot be read is an
    /// error, for a budget may depend on it.
    pub fn with_file(path: &Path) -> Result<Self, AppFailure> {
        let mut catalog = Self::embedded();
        match fs::read_to_string(path) {
            Ok(text) => catalog.read(&text).map_err(|(line, what)| {
                AppFailure::new(
                    format!("{}:{line}: {what}", path.display()),
                    "write: model context input output cached cache-write, with - for what is not known",
                )
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(AppFailure::file("read", path, &error)),
        }
        Ok(catalog)
    }

    /// What this version came with, for whoever wants to edit it.
    pub fn embedded_text() -> &'static str {
        OURS
    }

    /// What is known about this model, whoever serves it. The price is that of the model itself or of a
    /// release of it; the context may be that of its family.
    pub fn entry(&self, model: &str) -> Option<CatalogEntry> {
        let name = normal(model);
        let family = self.longest(&name, is_of_family)?;
        let release = self.longest(&name, is_release);
        Some(CatalogEntry {
            context_length: family.context_length,
            price: release.and_then(|entry| entry.price),
        })
    }

    /// The entry with the longest name that this one begins with and goes on from as `fits` allows.
    fn longest(&self, name: &str, fits: fn(&str) -> bool) -> Option<&CatalogEntry> {
        let known = self.entries.iter();
        let fitting =
            known.filter(|(known, _)| name.strip_prefix(known.as_str()).is_some_and(fits));
        let longest = fitting.max_by_key(|(known, _)| known.len());
        longest.map(|(_, entry)| entry)
    }

    fn embedded() -> Self {
        let mut catalog = Self {
            entries: BTreeMap::new(),
        };
        // A test reads it.
        let _ = catalog.read(OURS);
        catalog
    }

    fn read(&mut self, text: &str) -> Result<(), (usize, String)> {
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            let words: Vec<_> = line.split_whitespace().collect();
            let Some((name, fields)) = words.split_first() else {
                continue;
            };
            let entry = entry(fields).map_err(|what| (number + 1, what))?;
            self.entries.insert(normal(name), entry);
        }
        Ok(())
    }
}

/// `gpt-5-mini` is of the family of `gpt-5`, and `gpt-50` is not.
fn is_of_family(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with(['-', ':', '@'])
}

/// Whether a name that goes on like this is the same model: with its date, as the latest, or as some provider
/// serves it. What is called anything else may cost anything else, as `gpt-5-pro` does.
fn is_release(rest: &str) -> bool {
    if rest.is_empty() || rest.starts_with([':', '@']) || rest == "-latest" {
        return true;
    }
    let Some(date) = rest.strip_prefix('-') else {
        return false;
    };
    // A year comes first, or all of it in one: `gpt-5-6-2026-01-01` is a version of its own.
    let first = date.split('-').next().unwrap_or_default();
    let digits = date.bytes().filter(u8::is_ascii_digit).count();
    let only_digits = date
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'-');
    only_digits && first.len() >= 4 && digits >= 6
}

fn entry(fields: &[&str]) -> Result<CatalogEntry, String> {
    if fields.len() > 5 {
        return Err(format!("{} columns are too many", fields.len() + 1));
    }
    let field = |place: usize| fields.get(place).copied().filter(|field| *field != "-");
    let context_length = field(0).map(|field| {
        field
            .parse()
            .map_err(|_| format!("{field:?} is no number of tokens"))
    });
    let (input, output) = (amount(field(1))?, amount(field(2))?);
    let (cached_input, cache_write) = (amount(field(3))?, amount(field(4))?);
    let price = match (input, output) {
        (Some(input), Some(output)) => Some(TokenPrice {
            input,
            output,
            cached_input,
            cache_write,
        }),
        (None, None) => None,
        _ => return Err("input and output belong together".to_owned()),
    };
    Ok(CatalogEntry {
        context_length: context_length.transpose()?,
        price,
    })
}

fn amount(field: Option<&str>) -> Result<Option<NanoDollars>, String> {
    let Some(field) = field else { return Ok(None) };
    let dollars = field.trim_start_matches('$').parse().ok();
    let amount = dollars.and_then(NanoDollars::from_dollars);
    let amount = amount.ok_or_else(|| format!("{field:?} is no price in dollars"))?;
    Ok(Some(amount))
}

fn normal(model: &str) -> String {
    let own = model.rsplit('/').next().unwrap_or(model);
    own.to_ascii_lowercase().replace('.', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dollars(amount: f64) -> Option<NanoDollars> {
        NanoDollars::from_dollars(amount)
    }

    #[test]
    fn our_own_table_can_be_read() {
        let mut catalog = ModelCatalog {
            entries: BTreeMap::new(),
        };
        assert_eq!(catalog.read(OURS), Ok(()));
        assert!(catalog.entries.len() > 30);
    }

    #[test]
    fn a_model_is_known_by_the_longest_name_that_its_own_begins_with() {
        let catalog = ModelCatalog::embedded();
        let input = |model: &str| {
            let price = catalog.entry(model)?.price?;
            Some(price.input)
        };
        assert_eq!(input("anthropic/claude-opus-4.6"), dollars(5.0));
        assert_eq!(input("claude-opus-4-1-20250805"), dollars(15.0));
        assert_eq!(input("gpt-5-mini-2025-08-07"), dollars(0.25));
        assert_eq!(input("openai/gpt-5.2"), dollars(1.75));
        assert_eq!(input("moonshotai/kimi-k2:free"), dollars(0.6));
        assert_eq!(input("claude-opus-4-1@20250805"), dollars(15.0));
        assert_eq!(input("claude-3-5-sonnet-latest"), dollars(3.0));
        assert_eq!(input("o1-pro"), dollars(150.0));
        assert_eq!(input("o3-deep-research-2025-06-26"), dollars(10.0));
        assert_eq!(input("gpt-50"), None);
        assert_eq!(input("mistral-large-latest"), None);
    }

    #[test]
    fn a_newer_model_of_a_family_has_its_context_and_not_its_price() {
        let catalog = ModelCatalog::embedded();
        for newer in [
            "gpt-5.9-pro",
            "openai/gpt-5.9",
            "gpt-5.9-2027-01-01",
            "gpt-5-ultra",
            "o3-something",
            "kimi-k2-faster",
            "claude-opus-4-9",
        ] {
            let entry = catalog.entry(newer).unwrap();
            assert_eq!(entry.price, None, "{newer}");
            assert!(entry.context_length.is_some(), "{newer}");
        }
    }

    #[test]
    fn a_line_in_the_home_beats_ours_and_a_wrong_one_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(ModelCatalog::FILE);
        fs::write(&path, "# mine\n\nmine 1000 1 2\ngpt-5 - $9 9 # dear\n").unwrap();
        let catalog = ModelCatalog::with_file(&path).unwrap();
        let price = catalog.entry("gpt-5").unwrap();
        assert_eq!(price.price.unwrap().input, dollars(9.0).unwrap());
        assert_eq!(price.context_length, None);
        assert_eq!(catalog.entry("mine").unwrap().context_length, Some(1000));
        for wrong in ["a x", "a 1 2", "a 1 2 nan", "a 1 2 3 4 5 6", "a 1 -1 2"] {
            fs::write(&path, format!("\n{wrong}\n")).unwrap();
            let error = ModelCatalog::with_file(&path).unwrap_err().to_string();
            assert!(error.contains("models.txt:2"), "{wrong}: {error}");
        }
    }
}
