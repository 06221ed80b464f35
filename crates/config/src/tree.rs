//! YAML as a tree in which every node knows its place.
//!
//! Deserialising straight into structs stops at the first mistake. A tree that is looked at
//! afterwards can show all of them at once. JSON is read by the same code, being YAML.
//!
//! What the text can make us do is bounded: nesting by the parser, size by the builder, which
//! also counts what aliases repeat.

mod builder;

use granit_parser::{Parser, ScanError};

use crate::place::Place;
use crate::problem::Problem;
use crate::source::Source;
use builder::Builder;

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) content: Content,
}

#[derive(Clone, Debug)]
pub(crate) enum Content {
    Null,
    Scalar(Scalar),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

#[derive(Clone, Debug)]
pub(crate) struct Scalar {
    pub(crate) text: String,
    /// Written without quotes, so that `off` or `5` mean more than text.
    pub(crate) plain: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) name_place: Place,
    pub(crate) value: Node,
}

impl Node {
    /// What it is, for "expected …, found …".
    pub(crate) fn kind(&self) -> &'static str {
        match self.content {
            Content::Null => "nothing",
            Content::Scalar(_) => "a single value",
            Content::List(_) => "a list",
            Content::Map(_) => "a map",
        }
    }

    fn weight(&self) -> usize {
        1 + match &self.content {
            Content::Null | Content::Scalar(_) => 0,
            Content::List(items) => items.iter().map(Self::weight).sum(),
            Content::Map(entries) => entries.iter().map(|entry| 1 + entry.value.weight()).sum(),
        }
    }
}

/// The document in `source` and what is wrong with it.
///
/// There is no document if the file holds nothing but comments, or is broken beyond reading. A
/// mistake that reading can go on after leaves one, so that the rest can be looked at as well.
pub(crate) fn parse(source: &Source) -> (Option<Node>, Vec<Problem>) {
    let mut builder = Builder::new(source);
    let options = granit_parser::options! { emit_unresolved_aliases: true };
    for event in Parser::new_from_str_with_options(source.text(), options) {
        let taken = event
            .map_err(|error| broken(source, &error))
            .and_then(|(event, span)| builder.take(event, &span));
        if let Err(problem) = taken {
            builder.problems.push(problem);
            return (None, builder.problems);
        }
    }
    (builder.root, builder.problems)
}

fn broken(source: &Source, error: &ScanError) -> Problem {
    let marker = error.marker();
    let place = Place {
        source: source.clone(),
        line: marker.line().max(1),
        column: marker.col() + 1,
        length: 1,
    };
    let line = source.line(place.line);
    let indent = &line[..line.len() - line.trim_start().len()];
    let help = if indent.contains('\t') {
        "indent with spaces; YAML does not allow tabs there"
    } else if line.is_empty() {
        "something above is not closed: a quote, a bracket or a brace"
    } else if error.info().contains("expected key") || error.info().contains("indent") {
        "keys of one section start in the same column; is the indentation right?"
    } else {
        "a value with `: `, `#`, brackets or quotes in it needs quotes around it"
    };
    Problem::error(format!("not valid YAML: {}", error.info()))
        .at(&place)
        .help(help)
        .help("nothing else of this file was looked at")
}
