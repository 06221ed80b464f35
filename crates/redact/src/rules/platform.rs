//! Tokens of chat platforms, which have a shape instead of a prefix.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::class::Class;
use crate::window::{Ahead, Found, is_token, starts_word};

/// Whoever knows the rest of such an address may write there.
pub(super) static WEBHOOK_PATHS: [&str; 4] = [
    "hooks.slack.com/services/",
    "hooks.slack.com/workflows/",
    "discord.com/api/webhooks/",
    "discordapp.com/api/webhooks/",
];

pub(super) fn webhook(path: &str, ahead: Ahead<'_>) -> Found {
    if !ahead.is(0, path)? {
        return Ok(None);
    }
    let end = ahead.run(path.len(), Class::Path)?;
    Ok((end - path.len() >= 20).then_some(path.len()..end))
}

/// `123456789:AA…`: the number is the bot's public id, the rest is the secret. In an API address the
/// number follows the word `bot`.
pub(super) fn telegram_token(behind: &[u8], ahead: Ahead<'_>) -> Found {
    let digits = behind
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    if !(6..=12).contains(&digits) || !ahead.is(0, ":AA")? {
        return Ok(None);
    }
    let end = ahead.run(1, Class::Token)?;
    Ok((end > 30).then_some(1..end))
}

/// The owner's id in base64, a time, a signature.
pub(super) fn discord_token(behind: &[u8], ahead: Ahead<'_>) -> Found {
    if !starts_word(behind) {
        return Ok(None);
    }
    let mut at = 0;
    for (least, most) in [(23, 28), (6, 7), (27, 45)] {
        if at > 0 {
            if ahead.at(at)? != Some(b'.') {
                return Ok(None);
            }
            at += 1;
        }
        let end = ahead.short_run(at, most + 1, is_token)?;
        if !(least..=most).contains(&(end - at)) {
            return Ok(None);
        }
        at = end;
    }
    Ok(Some(0..at))
}

/// The id is a decimal number, so its encoding has few beginnings.
pub(super) fn discord_starts() -> impl Iterator<Item = [u8; 3]> {
    (b'1'..=b'9').flat_map(|first| {
        (b'0'..=b'9').filter_map(move |second| {
            let encoded = STANDARD.encode([first, second, b'0']).into_bytes();
            encoded.first_chunk().copied()
        })
    })
}
