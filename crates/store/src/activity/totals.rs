//! Sums that cannot fail, in the words of each database.

/// A sum that does not overflow: it is a fraction in between.
macro_rules! sqlite_total {
    ($what:literal) => {
        concat!("CAST(total(", $what, ") AS INTEGER)")
    };
}

/// The same where a sum has any number of digits.
macro_rules! postgres_total {
    ($what:literal) => {
        concat!(
            "CAST(least(greatest(coalesce(sum(",
            $what,
            "), 0), -9223372036854775807), 9223372036854775807) AS BIGINT)"
        )
    };
}

pub(super) use {postgres_total, sqlite_total};
