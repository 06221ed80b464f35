//! What a day may cost.

use super::{SchemaKey, ValueShape, count, key};

pub(super) fn keys() -> Vec<SchemaKey> {
    let scopes = [
        (
            "person",
            [
                "dollars a day that one person may spend on models",
                "tokens a day that one person may spend",
                "seconds a day that one person's tools may run",
                "bytes a day that one person may send out of sandboxes",
            ],
        ),
        (
            "conversation",
            [
                "dollars a day that one conversation may spend on models",
                "tokens a day that one conversation may spend",
                "seconds a day that one conversation's tools may run",
                "bytes a day that one conversation may send out of its sandbox",
            ],
        ),
        (
            "all",
            [
                "dollars a day that everybody together may spend on models",
                "tokens a day that everybody together may spend",
                "seconds a day that everybody's tools together may run",
                "bytes a day that everybody together may send out of sandboxes",
            ],
        ),
    ];
    let of_scope =
        |(scope, [dollars, tokens, tool_seconds, bytes_out]): (&str, [&'static str; 4])| {
            [
                key(
                    format!("budgets.{scope}.dollars"),
                    ValueShape::Number {
                        least: 0.0,
                        most: 1_000_000.0,
                    },
                    "",
                    dollars,
                ),
                key(
                    format!("budgets.{scope}.tokens"),
                    count(0, 1_000_000_000_000),
                    "",
                    tokens,
                ),
                key(
                    format!("budgets.{scope}.tool_seconds"),
                    count(0, 1_000_000_000),
                    "",
                    tool_seconds,
                ),
                key(
                    format!("budgets.{scope}.bytes_out"),
                    ValueShape::Size { unit: 1, least: 0 },
                    "",
                    bytes_out,
                ),
            ]
        };
    scopes
        .into_iter()
        .flat_map(of_scope)
        .chain(prices())
        .collect()
}

/// What services beside the model cost.
fn prices() -> impl Iterator<Item = SchemaKey> {
    let prices = [
        ("search", "dollars that one search of web_search costs"),
        (
            "picture",
            "dollars that one picture of image_generate costs",
        ),
        (
            "transcript",
            "dollars that one voice message costs to be written down",
        ),
        (
            "speech",
            "dollars that a thousand characters of text_to_speech cost",
        ),
    ];
    prices.into_iter().map(|(name, about)| {
        let dollars = ValueShape::Number {
            least: 0.0,
            most: 1000.0,
        };
        key(format!("budgets.prices.{name}"), dollars, "", about)
    })
}
