//! What an element is by its name and attributes.

use html5ever::tokenizer::Tag;

pub(super) fn attribute<'a>(tag: &'a Tag, name: &str) -> Option<&'a str> {
    let mut attributes = tag.attrs.iter();
    let found = attributes.find(|attribute| &*attribute.name.local == name);
    found.map(|attribute| &*attribute.value)
}

/// What is hidden from a reader is hidden from a model: it is where a page would speak to the model alone.
pub(super) fn says_hidden(tag: &Tag) -> bool {
    let style = attribute(tag, "style").unwrap_or("");
    let style: String = style
        .split_whitespace()
        .collect::<String>()
        .to_ascii_lowercase();
    attribute(tag, "hidden").is_some()
        || attribute(tag, "aria-hidden").is_some_and(|value| value.eq_ignore_ascii_case("true"))
        || style.contains("display:none")
        || style.contains("visibility:hidden")
}

pub(super) fn is_never_shown(name: &str) -> bool {
    matches!(
        name,
        "script"
            | "style"
            | "template"
            | "svg"
            | "math"
            | "canvas"
            | "object"
            | "audio"
            | "video"
            | "iframe"
            | "noembed"
            | "noframes"
            | "select"
            | "datalist"
            | "textarea"
    )
}

/// Elements that authors do not close.
pub(super) fn may_stay_open(name: &str) -> bool {
    matches!(name, "p" | "li" | "dt" | "dd" | "td" | "th" | "tr")
}

pub(super) fn is_void(name: &str) -> bool {
    matches!(
        name,
        "area"
            | "base"
            | "br"
            | "col"
            | "embed"
            | "hr"
            | "img"
            | "input"
            | "link"
            | "meta"
            | "param"
            | "source"
            | "track"
            | "wbr"
    )
}

pub(super) fn is_block(name: &str) -> bool {
    matches!(
        name,
        "p" | "div"
            | "section"
            | "article"
            | "main"
            | "aside"
            | "header"
            | "footer"
            | "nav"
            | "blockquote"
            | "figure"
            | "figcaption"
            | "form"
            | "fieldset"
            | "address"
            | "details"
            | "summary"
            | "dl"
    )
}
