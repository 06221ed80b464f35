//! YAML as a tree in which every node knows its place.
//!
//! Deserialising straight into structs stops at the first mistake. A tree that is looked at
//! afterwards can show all of them at once. JSON is read by the same code, being YAML.
//!
//! What the text can make us do is bounded: nesting by the parser, size by [`MOST_NODES`], which
//! also counts what aliases repeat.

use std::collections::hash_map::Entry as Slot;
use std::collections::{HashMap, HashSet};

use granit_parser::{Event, Parser, ScalarStyle, ScanError, Span, Tag};

use crate::place::Place;
use crate::problem::Problem;
use crate::source::Source;

const MOST_NODES: usize = 100_000;

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

/// The document in `source`; `None` if it holds nothing but comments.
pub(crate) fn parse(source: &Source) -> Result<Option<Node>, Vec<Problem>> {
    let mut builder = Builder::new(source);
    let options = granit_parser::options! { emit_unresolved_aliases: true };
    for event in Parser::new_from_str_with_options(source.text(), options) {
        let (event, span) = match event {
            Ok(event) => event,
            Err(error) => {
                builder.problems.push(broken(source, &error));
                return Err(builder.problems);
            }
        };
        if let Err(problem) = builder.take(event, &span) {
            builder.problems.push(problem);
            return Err(builder.problems);
        }
    }
    if builder.problems.is_empty() {
        Ok(builder.root)
    } else {
        Err(builder.problems)
    }
}

struct Builder<'a> {
    source: &'a Source,
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    root: Option<Node>,
    documents: usize,
    nodes: usize,
    problems: Vec<Problem>,
}

/// A collection whose end has not come yet.
struct Open {
    anchor: usize,
    place: Place,
    content: OpenContent,
}

enum OpenContent {
    List(Vec<Node>),
    Map {
        entries: Vec<Entry>,
        merged: Vec<Entry>,
        key: Option<(String, Place)>,
        /// The line on which each name stands.
        lines: HashMap<String, usize>,
    },
}

impl<'a> Builder<'a> {
    fn new(source: &'a Source) -> Self {
        Self {
            source,
            open: Vec::new(),
            anchors: HashMap::new(),
            root: None,
            documents: 0,
            nodes: 0,
            problems: Vec::new(),
        }
    }

    /// An `Err` ends the reading; what reading can go on after is collected in `problems`.
    fn take(&mut self, event: Event<'_>, span: &Span) -> Result<(), Problem> {
        let place = self.place(span);
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(Problem::error("a second document starts here")
                        .at(&place)
                        .help("keep everything in one document: remove this `---`"));
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.check_tag(tag.as_deref(), &place);
                let plain = style == ScalarStyle::Plain && tag.is_none();
                let content = if plain && is_null(&text) {
                    Content::Null
                } else {
                    Content::Scalar(Scalar {
                        text: text.into_owned(),
                        plain,
                    })
                };
                self.finish(Node { place, content }, anchor)?;
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.check_tag(tag.as_deref(), &place);
                self.begin(place, anchor, OpenContent::List(Vec::new()));
            }
            Event::MappingStart(_, anchor, tag) => {
                self.check_tag(tag.as_deref(), &place);
                let content = OpenContent::Map {
                    entries: Vec::new(),
                    merged: Vec::new(),
                    key: None,
                    lines: HashMap::new(),
                };
                self.begin(place, anchor, content);
            }
            Event::SequenceEnd | Event::MappingEnd => self.end()?,
            Event::Alias(id) => {
                // Absent while its own anchor is still open: an alias to itself.
                let Some(target) = self.anchors.get(&id) else {
                    return Err(
                        Problem::error("this alias stands inside what it stands for")
                            .at(&place)
                            .help("write the value out instead"),
                    );
                };
                let copy = Node {
                    place,
                    content: target.content.clone(),
                };
                self.nodes += copy.weight();
                self.finish(copy, 0)?;
            }
            Event::UnresolvedAlias(name) => {
                self.problems.push(
                    Problem::error(format!("no anchor `&{}` before this alias", short(&name)))
                        .at(&place)
                        .help("a value that starts with `*` needs quotes"),
                );
                let content = Content::Null;
                self.finish(Node { place, content }, 0)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, place: Place, anchor: usize, content: OpenContent) {
        self.open.push(Open {
            anchor,
            place,
            content,
        });
    }

    fn end(&mut self) -> Result<(), Problem> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let content = match open.content {
            OpenContent::List(items) => Content::List(items),
            OpenContent::Map {
                mut entries,
                merged,
                lines,
                ..
            } => {
                let mut names: HashSet<String> = lines.into_keys().collect();
                for entry in merged {
                    if names.insert(entry.name.clone()) {
                        entries.push(entry);
                    }
                }
                Content::Map(entries)
            }
        };
        let place = open.place;
        self.finish(Node { place, content }, open.anchor)
    }

    /// Puts a complete node where it belongs.
    fn finish(&mut self, node: Node, anchor: usize) -> Result<(), Problem> {
        // What an anchor keeps is a copy, and so is every alias.
        self.nodes += if anchor == 0 { 1 } else { node.weight() };
        if self.nodes > MOST_NODES {
            return Err(
                Problem::error(format!("the file holds more than {MOST_NODES} values"))
                    .at(&node.place)
                    .help("aliases count as often as they repeat; write less"),
            );
        }
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        let Some(parent) = self.open.last_mut() else {
            self.root = match node.content {
                Content::Null => None,
                _ => Some(node),
            };
            return Ok(());
        };
        match &mut parent.content {
            OpenContent::List(items) => items.push(node),
            OpenContent::Map {
                entries,
                merged,
                key,
                lines,
            } => match key.take() {
                None => *key = Some(key_of(node)?),
                Some((name, place)) if name == "<<" => merged.extend(merge(node, &place)?),
                Some((name, name_place)) => {
                    match lines.entry(name.clone()) {
                        Slot::Vacant(slot) => {
                            slot.insert(name_place.line);
                        }
                        Slot::Occupied(first) => self.problems.push(
                            Problem::error(format!("the key `{}` is here twice", short(&name)))
                                .at(&name_place)
                                .help(format!(
                                    "the first is on line {}; keep one of them",
                                    first.get()
                                )),
                        ),
                    }
                    entries.push(Entry {
                        name,
                        name_place,
                        value: node,
                    });
                }
            },
        }
        Ok(())
    }

    fn check_tag(&mut self, tag: Option<&Tag>, place: &Place) {
        if let Some(tag) = tag.filter(|tag| !tag.is_yaml_core_schema()) {
            self.problems.push(
                Problem::error(format!(
                    "the tag `{}` means nothing here",
                    short(&tag.original())
                ))
                .at(place)
                .help("remove the tag; a value that starts with `!` needs quotes"),
            );
        }
    }

    fn place(&self, span: &Span) -> Place {
        let one_line = span.start.line() == span.end.line();
        Place {
            source: self.source.clone(),
            line: span.start.line().max(1),
            column: span.start.col() + 1,
            length: if one_line {
                span.end.col().saturating_sub(span.start.col()).max(1)
            } else {
                1
            },
        }
    }
}

fn key_of(node: Node) -> Result<(String, Place), Problem> {
    match node.content {
        Content::Scalar(scalar) => Ok((scalar.text, node.place)),
        Content::Null => Ok(("null".to_owned(), node.place)),
        Content::List(_) | Content::Map(_) => {
            Err(Problem::error(format!("{} cannot be a key", node.kind()))
                .at(&node.place)
                .help("a key is a plain word; text with braces or brackets needs quotes"))
        }
    }
}

/// What `<<` brings in.
fn merge(node: Node, place: &Place) -> Result<Vec<Entry>, Problem> {
    match node.content {
        Content::Map(entries) => Ok(entries),
        Content::List(items) => {
            let mut all = Vec::new();
            for item in items {
                all.extend(merge(item, place)?);
            }
            Ok(all)
        }
        Content::Null | Content::Scalar(_) => {
            Err(Problem::error("only a map can be merged by `<<`")
                .at(place)
                .help("point it at an anchor of a map, as in `<<: *base`"))
        }
    }
}

fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
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
