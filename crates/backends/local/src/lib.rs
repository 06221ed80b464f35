//! The host itself, for trusted use.
