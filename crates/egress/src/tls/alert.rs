//! A last word to a TLS client that we turn away: better than a silent close.

/// A fatal alert record.
pub(crate) const fn fatal(alert: TlsAlert) -> [u8; 7] {
    [21, 3, 3, 0, 2, 2, alert as u8]
}

/// The alerts that are sent to a client.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(crate) enum TlsAlert {
    AccessDenied = 49,
    DecodeError = 50,
    InternalError = 80,
    UnrecognizedName = 112,
}
