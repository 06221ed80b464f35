//! Puts the parser's events together.

use std::collections::hash_map::Entry as Slot;
use std::collections::{HashMap, HashSet};

use granit_parser::{Event, ScalarStyle, Span, Tag};

use super::{MapEntry, NodeContent, ScalarNode, YamlNode};
use crate::place::SourcePlace;
use crate::problem::ConfigProblem;
use crate::source::SourceFile;
use crate::wording::short;

/// Copies that anchors and aliases make count as well.
const MOST_NODES: usize = 100_000;

pub(super) struct TreeBuilder<'a> {
    source: &'a SourceFile,
    open: Vec<OpenCollection>,
    anchors: HashMap<usize, YamlNode>,
    pub(super) root: Option<YamlNode>,
    documents: usize,
    nodes: usize,
    pub(super) problems: Vec<ConfigProblem>,
}

/// A collection whose end has not come yet.
struct OpenCollection {
    anchor: usize,
    place: SourcePlace,
    content: OpenContent,
}

enum OpenContent {
    List(Vec<YamlNode>),
    Map {
        entries: Vec<MapEntry>,
        merged: Vec<MapEntry>,
        key: Option<(String, SourcePlace)>,
        /// The line on which each name stands.
        lines: HashMap<String, usize>,
    },
}

impl<'a> TreeBuilder<'a> {
    pub(super) fn new(source: &'a SourceFile) -> Self {
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
    pub(super) fn take(&mut self, event: Event<'_>, span: &Span) -> Result<(), ConfigProblem> {
        let place = self.place(span);
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(ConfigProblem::error("a second document starts here")
                        .at(&place)
                        .help("keep everything in one document: remove this `---`"));
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.check_tag(tag.as_deref(), &place);
                let plain = style == ScalarStyle::Plain && tag.is_none();
                let content = if plain && is_null(&text) {
                    NodeContent::Null
                } else {
                    NodeContent::Scalar(ScalarNode {
                        text: text.into_owned(),
                        plain,
                    })
                };
                self.finish(YamlNode { place, content }, anchor)?;
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
            Event::Alias(id) => self.take_alias(id, place)?,
            Event::UnresolvedAlias(name) => {
                self.problems.push(
                    ConfigProblem::error(format!(
                        "no anchor `&{}` before this alias",
                        short(&name)
                    ))
                    .at(&place)
                    .help("a value that starts with `*` needs quotes"),
                );
                let content = NodeContent::Null;
                self.finish(YamlNode { place, content }, 0)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn take_alias(&mut self, id: usize, place: SourcePlace) -> Result<(), ConfigProblem> {
        // Absent while its own anchor is still open: an alias to itself.
        let Some(target) = self.anchors.get(&id) else {
            return Err(
                ConfigProblem::error("this alias stands inside what it stands for")
                    .at(&place)
                    .help("write the value out instead"),
            );
        };
        let copy = YamlNode {
            place,
            content: target.content.clone(),
        };
        // Counted before it is put in its place, so that aliases of aliases end at the bound and not in all of
        // the memory.
        self.nodes += copy.weight();
        self.finish(copy, 0)
    }

    fn begin(&mut self, place: SourcePlace, anchor: usize, content: OpenContent) {
        self.open.push(OpenCollection {
            anchor,
            place,
            content,
        });
    }

    fn end(&mut self) -> Result<(), ConfigProblem> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let content = match open.content {
            OpenContent::List(items) => NodeContent::List(items),
            OpenContent::Map {
                mut entries,
                merged,
                lines,
                ..
            } => {
                // What is written here goes before what `<<` brings, and of two that it brings the
                // first.
                let mut names: HashSet<String> = lines.into_keys().collect();
                for entry in merged {
                    if names.insert(entry.name.clone()) {
                        entries.push(entry);
                    }
                }
                NodeContent::Map(entries)
            }
        };
        let place = open.place;
        self.finish(YamlNode { place, content }, open.anchor)
    }

    /// Puts a complete node where it belongs.
    fn finish(&mut self, node: YamlNode, anchor: usize) -> Result<(), ConfigProblem> {
        // What an anchor keeps is a copy, and so is every alias.
        self.nodes += if anchor == 0 { 1 } else { node.weight() };
        if self.nodes > MOST_NODES {
            return Err(ConfigProblem::error(format!(
                "the file holds more than {MOST_NODES} values"
            ))
            .at(&node.place)
            .help("aliases count as often as they repeat; write less"));
        }
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        let Some(parent) = self.open.last_mut() else {
            self.root = match node.content {
                NodeContent::Null => None,
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
                            ConfigProblem::error(format!(
                                "the key `{}` is here twice",
                                short(&name)
                            ))
                            .at(&name_place)
                            .help(format!(
                                "the first is on line {}; keep one of them",
                                first.get()
                            )),
                        ),
                    }
                    entries.push(MapEntry {
                        name,
                        name_place,
                        value: node,
                    });
                }
            },
        }
        Ok(())
    }

    fn check_tag(&mut self, tag: Option<&Tag>, place: &SourcePlace) {
        if let Some(tag) = tag.filter(|tag| !tag.is_yaml_core_schema()) {
            self.problems.push(
                ConfigProblem::error(format!(
                    "the tag `{}` means nothing here",
                    short(&tag.original())
                ))
                .at(place)
                .help("remove the tag; a value that starts with `!` needs quotes"),
            );
        }
    }

    fn place(&self, span: &Span) -> SourcePlace {
        let one_line = span.start.line() == span.end.line();
        SourcePlace {
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

fn key_of(node: YamlNode) -> Result<(String, SourcePlace), ConfigProblem> {
    match node.content {
        NodeContent::Scalar(scalar) => Ok((scalar.text, node.place)),
        NodeContent::Null => Ok(("null".to_owned(), node.place)),
        NodeContent::List(_) | NodeContent::Map(_) => Err(ConfigProblem::error(format!(
            "{} cannot be a key",
            node.kind()
        ))
        .at(&node.place)
        .help("a key is a plain word; text with braces or brackets needs quotes")),
    }
}

/// What `<<` brings in.
fn merge(node: YamlNode, place: &SourcePlace) -> Result<Vec<MapEntry>, ConfigProblem> {
    match node.content {
        NodeContent::Map(entries) => Ok(entries),
        NodeContent::List(items) => {
            let mut all = Vec::new();
            for item in items {
                all.extend(merge(item, place)?);
            }
            Ok(all)
        }
        NodeContent::Null | NodeContent::Scalar(_) => {
            Err(ConfigProblem::error("only a map can be merged by `<<`")
                .at(place)
                .help("point it at an anchor of a map, as in `<<: *base`"))
        }
    }
}

fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}
