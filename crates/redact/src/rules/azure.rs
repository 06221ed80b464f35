//! Keys of Azure, which carry a mark in their middle.
//!
//! The mark stands so many characters behind the beginning, and a few of a checksum follow it, so that
//! a key is known among other base64 without anything beside it.

/// Where the mark stands, and how many characters follow it at the least.
const PLACES: [(usize, usize); 5] = [(33, 5), (42, 6), (44, 4), (52, 4), (76, 4)];

/// How many more than that there may be: padding is not counted here.
const SLACK: usize = 3;

const MARKS: [&[u8]; 12] = [
    b"+ACR", b"+AEh", b"+ASb", b"+ASt", b"+ABa", b"ACDb", b"AIoT", b"APIM", b"AZDO", b"AzCa",
    b"AzFu", b"AzSe",
];

pub(super) fn is_signed(run: &[u8]) -> bool {
    PLACES.iter().any(|(at, after)| {
        let rest = run.get(*at..).unwrap_or_default();
        MARKS.iter().any(|mark| {
            rest.starts_with(mark)
                && (mark.len() + after..=mark.len() + after + SLACK).contains(&rest.len())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::is_signed;

    #[test]
    fn the_mark_has_its_place() {
        let drawn = "qEsckP1XxD7xJLaoZ3wBrojaaXQV7FQjOqEsckP1XxD7xJLaoZ3wBrojaaXQV7FQjOqEsckP1XxD7";
        for (at, mark, after) in [
            (33, "+ASb", "stnZBI"),
            (42, "+ACR", "B3Z71N"),
            (76, "AZDO", "YQPK"),
        ] {
            let key = format!("{}{mark}{after}", &drawn[..at]);
            assert!(is_signed(key.as_bytes()), "{key}");
            let moved = format!("x{key}");
            assert!(!is_signed(moved.as_bytes()), "{moved}");
        }
    }
}
