//! The words of a page, in the order in which they are painted.

use std::collections::HashMap;
use std::rc::Rc;

use super::file::PdfFile;
use super::font::PdfFont;
use super::object::{PdfDictionary, PdfObject, PdfReader};

/// Words of pages, as far as there is room for them.
pub(super) struct PdfPageText<'f, 'a> {
    file: &'f PdfFile<'a>,
    fonts: HashMap<u32, Rc<PdfFont>>,
    pub(super) text: String,
    /// Codes of which nobody knows what they mean.
    pub(super) unknown: usize,
    most: usize,
    /// Bytes of pages, forms and fonts that are still read.
    left: usize,
    /// Codes of fonts that may still be named.
    codes_left: usize,
}

/// Where the next words stand.
#[derive(Clone, Default)]
struct TextPlace {
    font: Option<Rc<PdfFont>>,
    size: f64,
    /// Where the last words began.
    x: f64,
    y: f64,
    line_x: f64,
    line_y: f64,
    leading: f64,
}

/// Forms that are painted in others.
const DEEPEST: usize = 5;
const MOST_READ: usize = 24 << 20;
const MOST_CODES: usize = 400_000;
/// What reading a font costs of that, whatever is in it.
const FONT: usize = 64 << 10;
/// Of an operator.
const MOST_OPERANDS: usize = 64;
/// A gap of so many thousandths of a letter's height is a space.
const SPACE: f64 = -180.0;

impl<'f, 'a> PdfPageText<'f, 'a> {
    pub(super) fn new(file: &'f PdfFile<'a>, most: usize) -> Self {
        Self {
            file,
            fonts: HashMap::new(),
            text: String::new(),
            unknown: 0,
            most,
            left: MOST_READ,
            codes_left: MOST_CODES,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.text.len() >= self.most || self.left == 0
    }

    /// Takes the words of what is painted by these bytes, with the fonts of these resources.
    pub(super) fn take(&mut self, content: &[u8], resources: &PdfDictionary, depth: usize) {
        let mut place = TextPlace::default();
        let mut reader = PdfReader::new(content, 0);
        let mut operands: Vec<PdfObject> = Vec::new();
        let mut at = 0;
        while let Some(object) = reader.next() {
            self.left = self.left.saturating_sub(reader.at() - at);
            at = reader.at();
            if self.is_full() {
                return;
            }
            let PdfObject::Word(word) = object else {
                if operands.len() < MOST_OPERANDS {
                    operands.push(object);
                }
                continue;
            };
            match word.as_slice() {
                b"Do" => self.paint(&operands, resources, depth),
                b"Tf" => {
                    place.font = self.font(&operands, resources);
                    place.size = number(&operands, 1).abs();
                }
                b"BI" => {
                    skip_picture(&mut reader, content);
                    at = reader.at();
                }
                word => self.obey(word, &operands, &mut place),
            }
            operands.clear();
        }
    }

    fn obey(&mut self, word: &[u8], operands: &[PdfObject], place: &mut TextPlace) {
        match word {
            // Where words stood last is kept: a line may be painted in several parts.
            b"BT" => (place.line_x, place.line_y) = (0.0, 0.0),
            b"ET" => self.space(),
            b"TL" => place.leading = number(operands, 0),
            b"Td" => self.go_by(place, number(operands, 0), number(operands, 1)),
            b"TD" => {
                place.leading = -number(operands, 1);
                self.go_by(place, number(operands, 0), number(operands, 1));
            }
            b"T*" => self.go_by(place, 0.0, -place.leading),
            b"Tm" => {
                let (x, y) = (number(operands, 4), number(operands, 5));
                self.part(place, x, y);
                place.go_to(x, y);
            }
            b"Tj" => operands
                .first()
                .into_iter()
                .for_each(|text| self.show(text, place)),
            b"'" | b"\"" => {
                self.go_by(place, 0.0, -place.leading);
                operands
                    .last()
                    .into_iter()
                    .for_each(|text| self.show(text, place));
            }
            b"TJ" => {
                let Some(PdfObject::List(parts)) = operands.first() else {
                    return;
                };
                for part in parts {
                    match part {
                        PdfObject::Number(gap) if *gap < SPACE => self.space(),
                        text => self.show(text, place),
                    }
                }
            }
            _ => {}
        }
    }

    fn go_by(&mut self, place: &mut TextPlace, x: f64, y: f64) {
        let (x, y) = (place.line_x + x, place.line_y + y);
        self.part(place, x, y);
        place.go_to(x, y);
    }

    /// A new line where it goes up or down, a space where it goes on.
    fn part(&mut self, place: &TextPlace, x: f64, y: f64) {
        let height = place.size.max(1.0);
        if (y - place.y).abs() > height * 0.3 {
            self.line();
        } else if x > place.x {
            self.space();
        }
    }

    fn show(&mut self, text: &PdfObject, place: &TextPlace) {
        let (PdfObject::Text(bytes), Some(font)) = (text, &place.font) else {
            return;
        };
        let (words, unknown) = font.decoded(bytes);
        self.unknown += unknown;
        self.text.push_str(&words);
    }

    pub(super) fn line(&mut self) {
        if self.text.ends_with(' ') {
            self.text.pop();
        }
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }

    fn space(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with([' ', '\n']) {
            self.text.push(' ');
        }
    }

    fn font(&mut self, operands: &[PdfObject], resources: &PdfDictionary) -> Option<Rc<PdfFont>> {
        let PdfObject::Name(name) = operands.first()? else {
            return None;
        };
        let name = std::str::from_utf8(name).ok()?;
        let fonts = self.file.value(resources, "Font")?.dictionary()?;
        let found = fonts.get(name)?;
        let number = match found {
            PdfObject::Reference(number) => Some(*number),
            _ => None,
        };
        let known = number.and_then(|number| self.fonts.get(&number));
        if let Some(known) = known {
            return Some(Rc::clone(known));
        }
        let font = self.file.follow(found).dictionary()?;
        let font = PdfFont::read(self.file, font, self.codes_left);
        let (codes, bytes) = font.cost();
        self.codes_left = self.codes_left.saturating_sub(codes);
        self.left = self.left.saturating_sub(FONT + bytes);
        let font = Rc::new(font);
        if let Some(number) = number {
            self.fonts.insert(number, Rc::clone(&font));
        }
        Some(font)
    }

    /// A form that is painted here: its words come in between.
    fn paint(&mut self, operands: &[PdfObject], resources: &PdfDictionary, depth: usize) {
        let Some(PdfObject::Name(name)) = operands.first() else {
            return;
        };
        let file = self.file;
        let form = || {
            let name = std::str::from_utf8(name).ok()?;
            let forms = file.value(resources, "XObject")?.dictionary()?;
            let PdfObject::Reference(number) = forms.get(name)? else {
                return None;
            };
            let form = file.object(*number)?.dictionary()?;
            form.is("Subtype", "Form").then_some((*number, form))
        };
        let Some((number, form)) = form().filter(|_| depth < DEEPEST) else {
            return;
        };
        let own = file
            .value(form, "Resources")
            .and_then(PdfObject::dictionary);
        self.line();
        self.take(&file.stream_of(number), own.unwrap_or(resources), depth + 1);
    }
}

impl TextPlace {
    fn go_to(&mut self, x: f64, y: f64) {
        (self.x, self.y, self.line_x, self.line_y) = (x, y, x, y);
    }
}

/// The bytes of a picture in the middle of a page are no operators.
fn skip_picture<'c>(reader: &mut PdfReader<'c>, content: &'c [u8]) {
    let from = reader.at();
    let end = [&b"\nEI"[..], b" EI", b"\rEI"].into_iter();
    let end = end
        .filter_map(|end| super::file::find(content, end, from))
        .min();
    *reader = PdfReader::new(content, end.map_or(content.len(), |end| end + 3));
}

fn number(operands: &[PdfObject], at: usize) -> f64 {
    let number = operands.get(at).and_then(PdfObject::number);
    number.filter(|number| number.is_finite()).unwrap_or(0.0)
}
