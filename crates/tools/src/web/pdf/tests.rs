use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::*;

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn stream(number: u32, dictionary: &str, bytes: &[u8]) -> Vec<u8> {
    let mut object = format!(
        "{number} 0 obj\n<< {dictionary} /Length {} >>\nstream\n",
        bytes.len()
    )
    .into_bytes();
    object.extend(bytes);
    object.extend(b"\nendstream\nendobj\n");
    object
}

/// Two pages: one packed, with a font that says what its codes mean, and one with a form in it.
fn document() -> Vec<u8> {
    let mut file = b"%PDF-1.5\n".to_vec();
    file.extend(
        b"1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj
        2 0 obj << /Type /Pages /Kids [3 0 R 4 0 R] /Count 2
            /Resources << /Font << /F1 5 0 R /F2 6 0 R >> /XObject << /X 10 0 R >> >> >> endobj
        3 0 obj << /Type /Page /Parent 2 0 R /Contents [7 0 R] >> endobj
        4 0 obj << /Type /Page /Parent 2 0 R /Contents 8 0 R >> endobj
        5 0 obj << /Type /Font /Subtype /Type1
            /Encoding << /Differences [1 /fi 150 /endash] >> >> endobj
        6 0 obj << /Type /Font /Subtype /Type0 /ToUnicode 9 0 R >> endobj
        11 0 obj << /Title (A report) /Producer (x) >> endobj\n",
    );
    let first = b"BT /F1 12 Tf 72 700 Td (Good mor) Tj [(n) -20 (ing) -300 (to)] TJ 0 -14 Td 14 TL (you) ' T*
        (\\001ne \\226 ) Tj ET BT /F2 12 Tf 1 0 0 1 72 600 Tm <00030004> Tj ET";
    file.extend(stream(7, "/Filter /FlateDecode", &packed(first)));
    file.extend(stream(8, "", b"BT /F1 9 Tf (second page) Tj ET /X Do"));
    file.extend(stream(
        9,
        "",
        b"begincodespacerange <0000> <ffff> endcodespacerange beginbfrange <0003> <0004> <0041> endbfrange",
    ));
    file.extend(stream(
        10,
        "/Subtype /Form",
        b"BT /F1 9 Tf (in a form) Tj ET /X Do",
    ));
    file.extend(b"trailer << /Root 1 0 R /Info 11 0 R >>\n%%EOF");
    file
}

#[test]
fn words_are_read_in_the_order_they_are_painted() {
    let read = text_of(&document()).unwrap();
    assert_eq!(read.title, "A report");
    let lines: Vec<_> = read.text.lines().collect();
    assert_eq!(
        lines,
        [
            "Good morning to",
            "you",
            "fine –",
            "AB",
            "",
            "second page",
            "in a form",
            "in a form",
            "in a form",
            "in a form",
            "in a form",
        ]
    );
}

#[test]
fn objects_that_are_packed_are_found() {
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >> ",
        "<< /Kids [3 0 R] /Type /Pages >> ",
        "<< /Type /Page /Contents 7 0 R /Resources << /Font << /F << /Subtype /Type1 >> >> >> >>",
    ];
    let (second, third) = (objects[0].len(), objects[0].len() + objects[1].len());
    let mut packed_objects = format!("1 0 2 {second} 3 {third} ").into_bytes();
    let first = packed_objects.len();
    packed_objects.extend(objects.concat().as_bytes());
    let mut file = b"%PDF-1.6\n".to_vec();
    let dictionary = format!("/Type /ObjStm /N 3 /First {first} /Filter /FlateDecode");
    file.extend(stream(20, &dictionary, &packed(&packed_objects)));
    file.extend(stream(7, "", b"BT /F 9 Tf (here) Tj ET"));
    assert_eq!(text_of(&file).unwrap().text, "here");
}

#[test]
fn what_has_no_text_says_why() {
    let why = |file: &[u8]| text_of(file).unwrap_err();
    assert_eq!(why(b"%PDF-1.7 and so on"), PdfError::NoText);
    let mut encrypted = document();
    encrypted.extend(b"trailer << /Encrypt 99 0 R >>");
    assert_eq!(why(&encrypted), PdfError::Encrypted);
    let mut glyphs = b"%PDF-1.5\n1 0 obj << /Type /Page /Contents 2 0 R
        /Resources << /Font << /F << /Subtype /Type0 >> >> >> >> endobj\n"
        .to_vec();
    glyphs.extend(stream(2, "", b"BT /F 9 Tf <00030004> Tj ET"));
    assert_eq!(why(&glyphs), PdfError::UnknownLetters);
}

/// Cut anywhere, or with a byte changed anywhere, it comes to an end.
#[test]
fn whatever_the_bytes_are_it_ends() {
    let whole = document();
    for end in (0..whole.len()).step_by(29) {
        let _ = text_of(&whole[..end]);
    }
    for at in (0..whole.len()).step_by(13) {
        let mut bent = whole.clone();
        bent[at] = bent[at].wrapping_add(37);
        let _ = text_of(&bent);
    }
    // Many packed objects that are all the same large one.
    let heads: String = (1..500).map(|number| format!("{number} 0 ")).collect();
    let mut objects = heads.into_bytes();
    let first = objects.len();
    objects.extend(b"[0 ".repeat(20));
    objects.extend(b"1 ".repeat(5_000));
    let mut file = b"%PDF-1.6\n".to_vec();
    let dictionary = format!("/Type /ObjStm /N 499 /First {first} /Filter /FlateDecode");
    file.extend(stream(9000, &dictionary, &packed(&objects)));
    assert!(text_of(&file).is_err());
    // Fonts whose codes are all named by a few bytes.
    let mut file =
        b"%PDF-1.5\n1 0 obj << /Type /Page /Contents 2 0 R /Resources << /Font << ".to_vec();
    let each = |write: fn(u32) -> String| (10..60).map(write).collect::<String>().into_bytes();
    file.extend(each(|number| format!("/F{number} {number} 0 R ")));
    file.extend(b">> >> >> endobj\n");
    file.extend(each(|number| {
        format!("{number} 0 obj << /ToUnicode 3 0 R >> endobj\n")
    }));
    file.extend(stream(
        2,
        "",
        &each(|number| format!("/F{number} 1 Tf (a) Tj ")),
    ));
    let all = b"begincodespacerange <0000> <ffff> endcodespacerange beginbfrange <0000> <ffff> <0041> endbfrange";
    file.extend(stream(3, "", all));
    let _ = text_of(&file);
    // One that unpacks to much, painted again and again.
    let bomb = packed(&b"/X Do ".repeat(1 << 15));
    let mut file = b"%PDF-1.5\n1 0 obj << /Type /Page /Contents 2 0 R /Resources << /XObject << /X 2 0 R >> >> >> endobj\n".to_vec();
    file.extend(stream(2, "/Subtype /Form /Filter /FlateDecode", &bomb));
    assert!(text_of(&file).is_err());
}
