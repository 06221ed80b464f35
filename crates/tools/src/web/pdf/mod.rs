//! The text of a PDF file, as far as it has some.
//!
//! A small reader of our own: it looks for what is painted as words and leaves everything else alone, scripts,
//! forms and attachments included. Whatever the bytes are it ends, within bounds on what it unpacks and writes.

mod file;
mod font;
mod object;
mod page;

use std::collections::HashSet;

use file::PdfFile;
use object::{PdfDictionary, PdfObject};
use page::PdfPageText;
use thiserror::Error;

/// What was read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PdfText {
    pub(crate) title: String,
    pub(crate) text: String,
    pub(crate) is_cut: bool,
}

const MOST_PAGES: usize = 2000;
/// Bytes of text.
const MOST_TEXT: usize = 4 << 20;
const MOST_TITLE: usize = 200;
/// Levels of a tree of pages.
const DEEPEST: usize = 32;

/// Why there are no words, for the model.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub(crate) enum PdfError {
    #[error("it is a PDF that is encrypted, and cannot be read without its password")]
    Encrypted,
    #[error("it is a PDF that does not say which characters its letters are")]
    UnknownLetters,
    #[error("it is a PDF without text, as scanned pages are")]
    NoText,
}

impl PdfError {
    /// Whether a model that sees could read it all the same.
    pub(crate) fn is_legible(self) -> bool {
        self != Self::Encrypted
    }
}

/// The words of all pages, with an empty line between two.
pub(crate) fn text_of(bytes: &[u8]) -> Result<PdfText, PdfError> {
    let file = PdfFile::read(bytes);
    if file.is_encrypted() {
        return Err(PdfError::Encrypted);
    }
    let pages = pages(&file);
    let mut words = PdfPageText::new(&file, MOST_TEXT);
    let nothing = PdfDictionary::default();
    let mut is_cut = false;
    for page in &pages {
        if words.is_full() {
            is_cut = true;
            break;
        }
        let Some(dictionary) = file.object(page.number).and_then(PdfObject::dictionary) else {
            continue;
        };
        let content = content(&file, dictionary);
        words.take(&content, page.resources.unwrap_or(&nothing), 0);
        words.line();
        words.text.push('\n');
    }
    let text = crate::shown::legible(words.text.trim());
    match text.is_empty() {
        true if words.unknown > 0 => Err(PdfError::UnknownLetters),
        true => Err(PdfError::NoText),
        false => Ok(PdfText {
            title: title(&file),
            text,
            is_cut: is_cut || pages.len() == MOST_PAGES,
        }),
    }
}

/// A page with the fonts and forms that it has by itself or by what it is in.
struct PdfPage<'f> {
    number: u32,
    resources: Option<&'f PdfDictionary>,
}

/// In the order of the file's tree; where there is none, in that of their numbers.
fn pages<'f>(file: &'f PdfFile<'_>) -> Vec<PdfPage<'f>> {
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    for catalog in file.of_type("Catalog") {
        let catalog = file.object(catalog).and_then(PdfObject::dictionary);
        let root = catalog.and_then(|catalog| catalog.get("Pages"));
        if let Some(PdfObject::Reference(root)) = root {
            descend(file, *root, None, (&mut found, &mut seen), 0);
        }
    }
    if found.is_empty() {
        for number in file.of_type("Page").into_iter().take(MOST_PAGES) {
            descend(file, number, None, (&mut found, &mut seen), 0);
        }
    }
    found
}

fn descend<'f>(
    file: &'f PdfFile<'_>,
    number: u32,
    above: Option<&'f PdfDictionary>,
    (found, seen): (&mut Vec<PdfPage<'f>>, &mut HashSet<u32>),
    depth: usize,
) {
    let Some(node) = file.object(number).and_then(PdfObject::dictionary) else {
        return;
    };
    if !seen.insert(number) || depth > DEEPEST || found.len() >= MOST_PAGES {
        return;
    }
    let own = file
        .value(node, "Resources")
        .and_then(PdfObject::dictionary);
    let resources = own.or(above);
    match file.value(node, "Kids") {
        Some(PdfObject::List(kids)) => {
            for kid in kids {
                if let PdfObject::Reference(kid) = kid {
                    descend(file, *kid, resources, (found, seen), depth + 1);
                }
            }
        }
        _ => found.push(PdfPage { number, resources }),
    }
}

fn content(file: &PdfFile<'_>, page: &PdfDictionary) -> Vec<u8> {
    let of = |object: &PdfObject| match object {
        PdfObject::Reference(number) => file.stream_of(*number).into_owned(),
        _ => Vec::new(),
    };
    match page.get("Contents") {
        Some(PdfObject::List(parts)) => joined(parts.iter().map(of)),
        Some(one) => match file.follow(one) {
            PdfObject::List(parts) => joined(parts.iter().map(of)),
            _ => of(one),
        },
        None => Vec::new(),
    }
}

/// A word does not go on from one part to the next.
fn joined(parts: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut all = Vec::new();
    for part in parts {
        all.extend(part);
        all.push(b'\n');
    }
    all
}

/// Of any dictionary that tells of the document.
fn title(file: &PdfFile<'_>) -> String {
    let Some(title) = file.info_title() else {
        return String::new();
    };
    let text = match title.strip_prefix(b"\xfe\xff") {
        Some(wide) => {
            let units = wide
                .chunks_exact(2)
                .map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
            char::decode_utf16(units)
                .map(|unit| unit.unwrap_or('\u{fffd}'))
                .collect()
        }
        None => encoding_rs::WINDOWS_1252
            .decode_without_bom_handling(title)
            .0
            .into_owned(),
    };
    let text = crate::shown::legible(text.trim());
    text.replace('\n', " ").chars().take(MOST_TITLE).collect()
}

#[cfg(test)]
mod tests;
