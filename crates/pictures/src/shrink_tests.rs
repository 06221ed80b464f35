use image::codecs::gif::GifEncoder;
use image::codecs::png::PngEncoder;
use image::codecs::webp::WebPEncoder;
use image::{ExtendedColorType, Frame, ImageEncoder, Rgba, RgbaImage};

use super::*;
use crate::media_type;

/// For pictures that are made smaller without being asked how small.
const MOST: usize = 64 << 10;

/// Nothing that compresses: every pixel another colour.
fn noise(width: u32, height: u32) -> RgbImage {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    RgbImage::from_fn(width, height, |_, _| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let [red, green, blue, ..] = state.to_le_bytes();
        Rgb([red, green, blue])
    })
}

fn png(picture: &RgbImage) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (width, height) = picture.dimensions();
    PngEncoder::new(&mut bytes)
        .write_image(picture, width, height, ExtendedColorType::Rgb8)
        .unwrap();
    bytes
}

fn shown(bytes: &[u8]) -> RgbImage {
    image::load_from_memory(bytes).unwrap().into_rgb8()
}

#[test]
fn a_large_picture_of_each_format_becomes_a_small_one() {
    let picture = noise(150, 100);
    let mut gif = Vec::new();
    let frame = Frame::new(DynamicImage::from(noise(150, 120)).into_rgba8());
    GifEncoder::new(&mut gif).encode_frame(frame).unwrap();
    let mut webp = Vec::new();
    let encoder = WebPEncoder::new_lossless(&mut webp);
    picture.write_with_encoder(encoder).unwrap();
    let all = [
        (png(&picture), (150, 100)),
        (jpeg(&picture, 100).unwrap(), (150, 100)),
        (webp, (150, 100)),
        (gif, (150, 120)),
    ];
    for (bytes, was) in all {
        let most = bytes.len() / 4 * 3;
        let small = shrink(&bytes, most).unwrap();
        assert_eq!(small.was, was);
        assert!(small.bytes.len() <= most);
        assert_eq!(media_type(&small.bytes), Some("image/jpeg"));
        assert_eq!(shown(&small.bytes).dimensions(), small.is);
        let (width, height) = (f64::from(small.is.0), f64::from(small.is.1));
        let (was_wide, was_high) = (f64::from(was.0), f64::from(was.1));
        assert!(
            (width / height - was_wide / was_high).abs() < 0.02,
            "{small:?}"
        );
    }
}

#[test]
fn what_shines_through_is_white() {
    let clear = RgbaImage::from_pixel(64, 64, Rgba([0, 0, 0, 0]));
    let mut bytes = Vec::new();
    clear
        .write_with_encoder(PngEncoder::new(&mut bytes))
        .unwrap();
    let small = shrink(&bytes, MOST).unwrap();
    assert!(
        shown(&small.bytes)
            .pixels()
            .all(|pixel| pixel.0 == [255; 3])
    );
}

/// A picture that was taken upright, as a phone writes it: the pixels lie, and a note says so.
#[test]
fn a_photograph_is_turned_the_right_way_up() {
    let mut lying = RgbImage::from_pixel(60, 20, Rgb([255, 255, 255]));
    // Black where the top will be: of a picture turned clockwise, its left end.
    (0..10).for_each(|x| (0..20).for_each(|y| lying.put_pixel(x, y, Rgb([0, 0, 0]))));
    let mut bytes = Vec::new();
    let mut encoder = JpegEncoder::new_with_quality(&mut bytes, 95);
    // One tag, "Orientation", a short with the value 6: turn clockwise by 90 degrees.
    let mut note = b"II*\0\x08\0\0\0\x01\0".to_vec();
    note.extend([0x12, 0x01, 3, 0, 1, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0]);
    encoder.set_exif_metadata(note).unwrap();
    lying.write_with_encoder(encoder).unwrap();
    let upright = shown(&shrink(&bytes, MOST).unwrap().bytes);
    assert_eq!(upright.dimensions(), (20, 60));
    assert!(upright.get_pixel(10, 3).0[0] < 60, "the top is black");
    assert!(upright.get_pixel(10, 50).0[0] > 200, "the rest is white");
}

#[test]
fn a_few_bytes_that_claim_many_pixels_are_refused_before_any_is_made() {
    let mut claims = png(&noise(2, 2));
    // Width and height of the header, and its sum, which decoders check.
    claims[16..24].copy_from_slice(&[0, 1, 0, 0, 0, 1, 0, 0]);
    let sum = crc32(&claims[12..29]);
    claims[29..33].copy_from_slice(&sum.to_be_bytes());
    let refused = Err(PictureError::TooManyPixels {
        width: 65_536,
        height: 65_536,
    });
    assert_eq!(shrink(&claims, MOST), refused);
}

#[test]
fn broken_bytes_are_words_and_no_panic() {
    let whole = jpeg(&noise(24, 16), 90).unwrap();
    for bytes in [
        &b""[..],
        b"GIF89a",
        b"\xff\xd8\xff",
        b"RIFF\0\0\0\0WEBP",
        b"<svg/>",
    ] {
        assert_eq!(shrink(bytes, MOST), Err(PictureError::Unreadable));
    }
    let pictures = [whole, png(&noise(20, 15))];
    for bytes in pictures {
        for at in (0..bytes.len()).step_by(11) {
            let mut broken = bytes.clone();
            broken[at] ^= 0x55;
            // Whatever comes out of it is bounded.
            if let Ok(small) = shrink(&broken, MOST) {
                assert!(small.bytes.len() <= MOST);
            }
            let _ = shrink(&bytes[..at], MOST);
        }
    }
}

#[test]
fn one_that_no_try_makes_small_enough_is_said_to_be_too_large() {
    let bytes = png(&noise(64, 64));
    assert_eq!(shrink(&bytes, 100), Err(PictureError::TooLarge));
}

#[test]
fn a_line_keeps_at_least_one_pixel_of_its_shorter_side() {
    let line = png(&RgbImage::from_pixel(8000, 1, Rgb([9, 9, 9])));
    assert_eq!(shrink(&line, MOST).unwrap().is, (1568, 1));
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        }
    }
    !crc
}
