//! Amounts of bytes: a bare number in the key's own unit, or spelled as `512MB`.

/// `text` in bytes, a bare number counting `unit` bytes each. `None` if it is no size.
pub(crate) fn parse(text: &str, unit: u64) -> Option<u64> {
    let text = text.trim();
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_')
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits);
    let unit = match suffix.trim().to_ascii_lowercase().as_str() {
        "" => unit,
        "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        "t" | "tb" | "tib" => 1 << 40,
        _ => return None,
    };
    let number = number.replace('_', "");
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(unit);
    }
    fraction(&number, unit)
}

/// `1.5` of a unit, without a float in between.
fn fraction(number: &str, unit: u64) -> Option<u64> {
    let (whole, part) = number.split_once('.')?;
    let part = part
        .get(..part.len().min(6))
        .filter(|part| !part.is_empty())?;
    let whole: u64 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    let numerator: u64 = part.parse().ok()?;
    let denominator = 10u64.pow(u32::try_from(part.len()).ok()?);
    let fraction = u128::from(numerator) * u128::from(unit) / u128::from(denominator);
    whole
        .checked_mul(unit)?
        .checked_add(u64::try_from(fraction).ok()?)
}

/// The largest unit that leaves no rest.
pub(crate) fn spell(bytes: u64) -> String {
    for (unit, name) in [
        (1u64 << 40, "TB"),
        (1 << 30, "GB"),
        (1 << 20, "MB"),
        (1 << 10, "KB"),
    ] {
        if bytes >= unit && bytes.is_multiple_of(unit) {
            return format!("{}{name}", bytes / unit);
        }
    }
    format!("{bytes}B")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in [
            ("5120", Some(5120 << 20)),
            ("5GB", Some(5 << 30)),
            ("5 gib", Some(5 << 30)),
            ("512MB", Some(512 << 20)),
            ("1.5g", Some(3 << 29)),
            ("0", Some(0)),
            ("5GBB", None),
            ("-1", None),
            ("", None),
            ("GB", None),
            ("1.2.3", None),
            ("1e9", None),
            ("99999999999999999999", None),
            ("18446744073709551615TB", None),
            (".nan", None),
        ] {
            assert_eq!(parse(text, 1 << 20), bytes, "{text}");
        }
    }

    #[test]
    fn sizes_are_spelled_without_a_rest() {
        assert_eq!(spell(5120 << 20), "5GB");
        assert_eq!(spell(1536 << 20), "1536MB");
        assert_eq!(spell(33), "33B");
    }
}
