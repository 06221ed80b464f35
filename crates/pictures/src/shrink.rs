//! From bytes to fewer bytes.

use std::io::Cursor;

use image::codecs::jpeg::JpegEncoder;
use image::imageops::FilterType;
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageError, ImageReader, Limits, Rgb, RgbImage};
use thiserror::Error;

use crate::SmallPicture;

/// Somewhat more than the largest camera of a phone makes.
const MOST_PIXELS: u64 = 56_000_000;

/// What decoding may take: three bytes a pixel, and some.
const MOST_MEMORY: u64 = 256 << 20;

/// The longer side and the quality, tried in turn until the bytes are few enough. The first side is what the
/// largest providers scale to by themselves.
const TRIES: [(u32, u8); 5] = [(1568, 85), (1568, 70), (1024, 75), (768, 70), (384, 60)];

/// Why a picture could not be made smaller.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum PictureError {
    #[error("its format is not known, or it is broken")]
    Unreadable,
    #[error("it has {width} × {height} pixels, which is more than is looked at")]
    TooManyPixels { width: u32, height: u32 },
    #[error("it takes more memory than a picture may")]
    TooMuchMemory,
    #[error("it could not be made small enough")]
    TooLarge,
}

/// The picture as a JPEG of at most so many bytes, the right way up.
pub(crate) fn shrink(bytes: &[u8], most_bytes: usize) -> Result<SmallPicture, PictureError> {
    let picture = decode(bytes)?;
    let was = (picture.width(), picture.height());
    // Scaled in steps, from one to the next: only the first looks at every pixel.
    let mut small = on_white(picture);
    for (side, quality) in TRIES {
        if small.width().max(small.height()) > side {
            small = scaled(&small, side);
        }
        let encoded = jpeg(&small, quality)?;
        if encoded.len() <= most_bytes {
            return Ok(SmallPicture {
                bytes: encoded,
                was,
                is: small.dimensions(),
            });
        }
    }
    Err(PictureError::TooLarge)
}

fn decode(bytes: &[u8]) -> Result<DynamicImage, PictureError> {
    let reader = ImageReader::new(Cursor::new(bytes))
        .with_guessed_format()
        .map_err(|_| PictureError::Unreadable)?;
    let mut decoder = reader.into_decoder().map_err(|error| failure(&error))?;
    // Before anything is made for the pixels: some hundred bytes can claim billions of them.
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > MOST_PIXELS {
        return Err(PictureError::TooManyPixels { width, height });
    }
    let mut limits = Limits::no_limits();
    limits.max_alloc = Some(MOST_MEMORY);
    // What the decoder makes for itself is counted by it, what it writes into is reserved here.
    limits
        .reserve(decoder.total_bytes())
        .map_err(|_| PictureError::TooMuchMemory)?;
    decoder
        .set_limits(limits)
        .map_err(|error| failure(&error))?;
    // A phone that was held upright says so beside the pixels.
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let mut picture = DynamicImage::from_decoder(decoder).map_err(|error| failure(&error))?;
    picture.apply_orientation(orientation);
    Ok(picture)
}

fn failure(error: &ImageError) -> PictureError {
    match error {
        ImageError::Limits(_) => PictureError::TooMuchMemory,
        _ => PictureError::Unreadable,
    }
}

/// A JPEG has no transparency, and what shines through should not turn black on black.
fn on_white(picture: DynamicImage) -> RgbImage {
    if !picture.color().has_alpha() {
        return picture.into_rgb8();
    }
    // Smaller first: with its transparency it takes a third more memory.
    let most = TRIES[0].0;
    let picture = match picture.width().max(picture.height()) > most {
        true => picture.thumbnail(most, most),
        false => picture,
    };
    let mixed = |over: u8, alpha: u8| {
        let (over, alpha) = (u32::from(over), u32::from(alpha));
        let mixed = (over * alpha + 255 * (255 - alpha)) / 255;
        u8::try_from(mixed).unwrap_or(u8::MAX)
    };
    let seen = picture.into_rgba8();
    RgbImage::from_fn(seen.width(), seen.height(), |x, y| {
        let [red, green, blue, alpha] = seen.get_pixel(x, y).0;
        Rgb([red, green, blue].map(|colour| mixed(colour, alpha)))
    })
}

/// So that its longer side has so many pixels, and the other at least one.
fn scaled(picture: &RgbImage, side: u32) -> RgbImage {
    let longer = picture.width().max(picture.height());
    let fit = |length: u32| {
        let fitted = u64::from(length) * u64::from(side) / u64::from(longer);
        u32::try_from(fitted).unwrap_or(side).max(1)
    };
    let (width, height) = (fit(picture.width()), fit(picture.height()));
    // A photograph is averaged down first, which is many times quicker than a good filter over all of it.
    if longer > side * 3 {
        let halfway = image::imageops::thumbnail(picture, width * 2, height * 2);
        return image::imageops::resize(&halfway, width, height, FilterType::Triangle);
    }
    image::imageops::resize(picture, width, height, FilterType::Triangle)
}

fn jpeg(picture: &RgbImage, quality: u8) -> Result<Vec<u8>, PictureError> {
    let mut encoded = Vec::new();
    let encoder = JpegEncoder::new_with_quality(&mut encoded, quality);
    picture
        .write_with_encoder(encoder)
        .map_err(|error| failure(&error))?;
    Ok(encoded)
}

#[cfg(test)]
#[path = "shrink_tests.rs"]
mod tests;
