//! A PDF file as its objects.
//!
//! They are found by looking for them and not by the file's own table: a file that was cut, or whose table lies,
//! gives what is there.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::io::Read as _;
use std::ops::Range;

use flate2::read::ZlibDecoder;

use super::object::{PdfDictionary, PdfObject, PdfReader, hex_pair};

pub(super) struct PdfFile<'a> {
    bytes: &'a [u8],
    objects: HashMap<u32, StoredObject>,
    /// Objects that may still be made.
    objects_left: usize,
    /// Bytes that may still be unpacked.
    room: Cell<usize>,
}

struct StoredObject {
    value: PdfObject,
    /// Where the bytes are that belong to it.
    stream: Option<Range<usize>>,
}

/// Those in others counted.
const MOST_OBJECTS: usize = 1_000_000;
/// Of one stream, unpacked.
const MOST_OF_ONE: usize = 8 << 20;
/// Of all of them together.
const MOST_OF_ALL: usize = 48 << 20;

impl<'a> PdfFile<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Self {
        let mut file = Self {
            bytes,
            objects: HashMap::new(),
            objects_left: MOST_OBJECTS,
            room: Cell::new(MOST_OF_ALL),
        };
        let mut at = 0;
        while let Some(found) = find(bytes, b" obj", at) {
            at = found + 4;
            // What is changed later stands for what was before.
            if let Some(number) = number_before(bytes, found)
                && file.objects_left > 0
            {
                at = file.take(number, at);
            }
        }
        file.unpack_objects();
        file
    }

    /// Reads the object that begins here; where to go on.
    fn take(&mut self, number: u32, at: usize) -> usize {
        let mut reader = PdfReader::new(self.bytes, at);
        let Some(value) = reader.next() else {
            return at;
        };
        let after = reader.at();
        self.objects_left = self.objects_left.saturating_sub(reader.made());
        let is_stream = value.dictionary().is_some() && {
            let rest = self.bytes[after.min(self.bytes.len())..].trim_ascii_start();
            rest.starts_with(b"stream")
        };
        let stream = is_stream
            .then(|| self.stream(after, value.dictionary()))
            .flatten();
        let end = stream.as_ref().map_or(after, |stream| stream.end);
        self.objects.insert(number, StoredObject { value, stream });
        end
    }

    /// Where the bytes of a stream are, whose word stands behind `after`.
    fn stream(&self, after: usize, dictionary: Option<&PdfDictionary>) -> Option<Range<usize>> {
        let mut from = find(self.bytes, b"stream", after)? + 6;
        from += match self.bytes.get(from..) {
            Some([b'\r', b'\n', ..]) => 2,
            Some([b'\n' | b'\r', ..]) => 1,
            _ => 0,
        };
        let said = dictionary.and_then(|known| known.get("Length")?.count());
        let said = said.and_then(|length| from.checked_add(length));
        // The word is believed where the end stands there.
        if let Some(end) = said.filter(|end| *end <= self.bytes.len())
            && self.bytes[end..]
                .trim_ascii_start()
                .starts_with(b"endstream")
        {
            return Some(from..end);
        }
        let end = find(self.bytes, b"endstream", from).unwrap_or(self.bytes.len());
        Some(from..end)
    }

    /// Objects that are packed into streams of others.
    fn unpack_objects(&mut self) {
        let is_packed = |stored: &&StoredObject| {
            let dictionary = stored.value.dictionary();
            dictionary.is_some_and(|dictionary| dictionary.is("Type", "ObjStm"))
        };
        let (mut packed, mut left) = (BTreeMap::new(), self.objects_left);
        for stored in self.objects.values().filter(is_packed) {
            let Some(dictionary) = stored.value.dictionary() else {
                continue;
            };
            let bytes = self.unpacked(stored);
            let count = |name: &str| dictionary.get(name).and_then(PdfObject::count).unwrap_or(0);
            let mut heads = PdfReader::new(&bytes, 0);
            for _ in 0..count("N").min(MOST_OBJECTS) {
                let (Some(number), Some(offset)) = (heads.next(), heads.next()) else {
                    break;
                };
                let (Some(number), Some(offset)) = (number.count(), offset.count()) else {
                    break;
                };
                let at = count("First").saturating_add(offset);
                if left == 0 {
                    break;
                }
                let mut reader = PdfReader::new(&bytes, at.min(bytes.len()));
                let object = reader.next();
                left = left.saturating_sub(reader.made());
                if let (Ok(number), Some(object)) = (u32::try_from(number), object) {
                    packed.insert(number, object);
                }
            }
        }
        for (number, value) in packed {
            let stored = StoredObject {
                value,
                stream: None,
            };
            self.objects.entry(number).or_insert(stored);
        }
    }

    pub(super) fn is_encrypted(&self) -> bool {
        let in_table = || {
            let trailer = find(self.bytes, b"trailer", 0)?;
            find(self.bytes, b"/Encrypt", trailer)
        };
        let in_streams = || {
            let mut all = self
                .objects
                .values()
                .filter_map(|stored| stored.value.dictionary());
            all.any(|known| known.is("Type", "XRef") && known.get("Encrypt").is_some())
        };
        in_table().is_some() || in_streams()
    }

    /// The numbers of all objects of this type, in order.
    pub(super) fn of_type(&self, name: &str) -> Vec<u32> {
        let is_such = |stored: &StoredObject| {
            let dictionary = stored.value.dictionary();
            dictionary.is_some_and(|dictionary| dictionary.is("Type", name))
        };
        let found = self.objects.iter().filter(|(_, stored)| is_such(stored));
        let mut numbers: Vec<_> = found.map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        numbers
    }

    /// What a dictionary that tells of the document calls it.
    pub(super) fn info_title(&self) -> Option<&[u8]> {
        let mut all = self
            .objects
            .values()
            .filter_map(|stored| stored.value.dictionary());
        let known =
            all.find(|known| known.get("Title").is_some() && known.get("Producer").is_some())?;
        match self.value(known, "Title")? {
            PdfObject::Text(title) => Some(title),
            _ => None,
        }
    }

    pub(super) fn object(&self, number: u32) -> Option<&PdfObject> {
        self.objects.get(&number).map(|stored| &stored.value)
    }

    /// What this leads to, if it is a reference, else itself.
    pub(super) fn follow<'o>(&'o self, object: &'o PdfObject) -> &'o PdfObject {
        let mut found = object;
        for _ in 0..8 {
            match found {
                PdfObject::Reference(number) => match self.object(*number) {
                    Some(object) => found = object,
                    None => return &PdfObject::Null,
                },
                other => return other,
            }
        }
        &PdfObject::Null
    }

    /// The value of a key, followed.
    pub(super) fn value<'o>(
        &'o self,
        dictionary: &'o PdfDictionary,
        name: &str,
    ) -> Option<&'o PdfObject> {
        dictionary.get(name).map(|value| self.follow(value))
    }

    /// The bytes of the stream of this number, unpacked as far as there is room.
    pub(super) fn stream_of(&self, number: u32) -> Cow<'_, [u8]> {
        match self.objects.get(&number) {
            Some(stored) => self.unpacked(stored),
            None => Cow::Borrowed(&[]),
        }
    }

    fn unpacked(&self, stored: &StoredObject) -> Cow<'_, [u8]> {
        let (Some(range), Some(dictionary)) = (&stored.stream, stored.value.dictionary()) else {
            return Cow::Borrowed(&[]);
        };
        let mut bytes = Cow::Borrowed(&self.bytes[range.clone()]);
        for filter in self.filters(dictionary) {
            let most = self.room.get().min(MOST_OF_ONE);
            let unpacked = match filter {
                b"FlateDecode" | b"Fl" => inflated(&bytes, most),
                b"ASCIIHexDecode" | b"AHx" => from_hex(&bytes),
                b"ASCII85Decode" | b"A85" => from_base_85(&bytes),
                // Pictures, and what is rarely around text.
                _ => return Cow::Borrowed(&[]),
            };
            self.room
                .set(self.room.get().saturating_sub(unpacked.len()));
            bytes = Cow::Owned(unpacked);
        }
        match self.predictor(dictionary) {
            Some(columns) => Cow::Owned(without_predictor(&bytes, columns)),
            None => bytes,
        }
    }

    fn filters<'o>(&'o self, dictionary: &'o PdfDictionary) -> Vec<&'o [u8]> {
        let name = |object: &'o PdfObject| match self.follow(object) {
            PdfObject::Name(name) => Some(name.as_slice()),
            _ => None,
        };
        match self.value(dictionary, "Filter") {
            Some(PdfObject::List(list)) => list.iter().filter_map(name).take(4).collect(),
            Some(one) => name(one).into_iter().collect(),
            None => Vec::new(),
        }
    }

    /// Columns of a stream whose lines say what differs from the line before.
    fn predictor(&self, dictionary: &PdfDictionary) -> Option<usize> {
        let parameters = match self.value(dictionary, "DecodeParms")? {
            PdfObject::List(list) => self.follow(list.first()?),
            one => one,
        };
        let parameters = parameters.dictionary()?;
        let count = |name: &str| parameters.get(name).and_then(PdfObject::count);
        let columns = count("Columns").unwrap_or(1).clamp(1, 1 << 16);
        (count("Predictor")? >= 10).then_some(columns)
    }
}

/// `12 0` before the word `obj`.
fn number_before(bytes: &[u8], at: usize) -> Option<u32> {
    let head = &bytes[at.saturating_sub(24)..at];
    let mut words = head
        .rsplit(|byte| !byte.is_ascii_digit())
        .filter(|word| !word.is_empty());
    let (_, number) = (words.next()?, words.next()?);
    std::str::from_utf8(number).ok()?.parse().ok()
}

pub(super) fn find(bytes: &[u8], wanted: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    let mut places = rest.windows(wanted.len());
    places.position(|place| place == wanted).map(|at| from + at)
}

/// What is broken in the middle gives what came before.
fn inflated(bytes: &[u8], most: usize) -> Vec<u8> {
    let mut unpacked = Vec::new();
    let mut bounded = ZlibDecoder::new(bytes).take(most as u64);
    let _ = bounded.read_to_end(&mut unpacked);
    unpacked
}

fn from_hex(bytes: &[u8]) -> Vec<u8> {
    let digits = bytes.iter().copied().take_while(|byte| *byte != b'>');
    let digits: Vec<u8> = digits.filter(u8::is_ascii_hexdigit).collect();
    digits.chunks_exact(2).filter_map(hex_pair).collect()
}

fn from_base_85(bytes: &[u8]) -> Vec<u8> {
    let mut unpacked = Vec::new();
    let mut group = Vec::with_capacity(5);
    for byte in bytes.iter().copied().take_while(|byte| *byte != b'~') {
        match byte {
            b'z' if group.is_empty() => unpacked.extend([0; 4]),
            b'!'..=b'u' => group.push(u32::from(byte - b'!')),
            _ => {}
        }
        if group.len() == 5 {
            unpacked.extend(four_bytes(&group));
            group.clear();
        }
    }
    if group.len() > 1 {
        let kept = group.len() - 1;
        group.resize(5, 84);
        unpacked.extend(&four_bytes(&group)[..kept]);
    }
    unpacked
}

fn four_bytes(group: &[u32]) -> [u8; 4] {
    let value = group.iter().fold(0_u32, |value, digit| {
        value.wrapping_mul(85).wrapping_add(*digit)
    });
    value.to_be_bytes()
}

/// Lines of PNG's kinds "none", "sub" and "up", which are the ones that are used for objects.
fn without_predictor(bytes: &[u8], columns: usize) -> Vec<u8> {
    let mut plain = Vec::with_capacity(bytes.len());
    let mut above = vec![0_u8; columns];
    for line in bytes.chunks(columns + 1) {
        let (kind, line) = (line[0], &line[1..]);
        let mut left = 0_u8;
        for (at, byte) in line.iter().enumerate() {
            let value = match kind {
                1 => byte.wrapping_add(left),
                2 => byte.wrapping_add(above[at]),
                _ => *byte,
            };
            left = value;
            above[at] = value;
        }
        plain.extend(&above[..line.len()]);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packings_are_undone() {
        assert_eq!(from_hex(b"48 65 6c>6c"), b"Hel");
        assert_eq!(from_base_85(b"87cURDZ~>"), b"Hello");
        assert_eq!(from_base_85(b"z!"), [0; 4]);
        assert_eq!(
            without_predictor(&[2, 1, 2, 2, 1, 1, 1, 5, 1], 2),
            [1, 2, 2, 3, 5, 6]
        );
    }
}
