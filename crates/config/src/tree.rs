//! YAML as a tree in which every node knows its place.
//!
//! Deserialising straight into structs stops at the first mistake. A tree that is looked at
//! afterwards can show all of them at once. JSON is read by the same code, being YAML.
//!
//! What the text can make us do is bounded: nesting by the parser, size by the builder, which
//! also counts what aliases repeat.

mod builder;

use granit_parser::{Parser, ScanError};

use crate::place::SourcePlace;
use crate::problem::ConfigProblem;
use crate::source::SourceFile;
use builder::TreeBuilder;

#[derive(Clone, Debug)]
pub(crate) struct YamlNode {
    pub(crate) place: SourcePlace,
    pub(crate) content: NodeContent,
}

#[derive(Clone, Debug)]
pub(crate) enum NodeContent {
    Null,
    Scalar(ScalarNode),
    List(Vec<YamlNode>),
    Map(Vec<MapEntry>),
}

#[derive(Clone, Debug)]
pub(crate) struct ScalarNode {
    pub(crate) text: String,
    /// Written without quotes, so that `off` or `5` mean more than text.
    pub(crate) plain: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct MapEntry {
    pub(crate) name: String,
    pub(crate) name_place: SourcePlace,
    pub(crate) value: YamlNode,
}

impl YamlNode {
    /// What it is, for "expected …, found …".
    pub(crate) fn kind(&self) -> &'static str {
        match self.content {
            NodeContent::Null => "nothing",
            NodeContent::Scalar(_) => "a single value",
            NodeContent::List(_) => "a list",
            NodeContent::Map(_) => "a map",
        }
    }

    /// Whether it says nothing, or switches off what it is about: a file that a program wrote holds
    /// every section, used or not.
    pub(crate) fn is_idle(&self) -> bool {
        match &self.content {
            NodeContent::Null => true,
            NodeContent::Scalar(scalar) => {
                let text = scalar.text.trim().to_lowercase();
                matches!(text.as_str(), "" | "false" | "off" | "no" | "none" | "0")
            }
            NodeContent::List(items) => items.is_empty(),
            NodeContent::Map(entries) => {
                let switch = entries.iter().find(|entry| entry.name == "enabled");
                switch.is_some_and(|switch| switch.value.is_idle())
                    || entries.iter().all(|entry| entry.value.is_idle())
            }
        }
    }

    /// Whether it says so itself.
    pub(crate) fn is_switched_on(&self) -> bool {
        let NodeContent::Map(entries) = &self.content else {
            return false;
        };
        let switch = entries.iter().find(|entry| entry.name == "enabled");
        switch.is_some_and(|switch| !switch.value.is_idle())
    }

    /// The names directly below it.
    pub(crate) fn names(&self) -> Vec<String> {
        match &self.content {
            NodeContent::Map(entries) => entries.iter().map(|entry| entry.name.clone()).collect(),
            NodeContent::Null | NodeContent::Scalar(_) | NodeContent::List(_) => Vec::new(),
        }
    }

    fn weight(&self) -> usize {
        1 + match &self.content {
            NodeContent::Null | NodeContent::Scalar(_) => 0,
            NodeContent::List(items) => items.iter().map(Self::weight).sum(),
            NodeContent::Map(entries) => entries.iter().map(|entry| 1 + entry.value.weight()).sum(),
        }
    }
}

/// The document in `source` and what is wrong with it.
///
/// There is no document if the file holds nothing but comments, or is broken beyond reading. A
/// mistake that reading can go on after leaves one, so that the rest can be looked at as well.
pub(crate) fn parse(source: &SourceFile) -> (Option<YamlNode>, Vec<ConfigProblem>) {
    let mut builder = TreeBuilder::new(source);
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

fn broken(source: &SourceFile, error: &ScanError) -> ConfigProblem {
    let marker = error.marker();
    let place = SourcePlace {
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
    ConfigProblem::error(format!("not valid YAML: {}", error.info()))
        .at(&place)
        .help(help)
        .help("nothing else of this file was looked at")
}
