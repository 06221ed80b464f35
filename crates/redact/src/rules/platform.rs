//! Tokens of chat platforms, which have a shape instead of a prefix.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::byte_class::ByteClass;
use crate::window::{RuleMatch, TextAhead, is_token, starts_word};

/// Whoever knows the rest of such an address may write there.
pub(super) static WEBHOOK_PATHS: [&str; 24] = [
    "hooks.slack.com/services/",
    "hooks.slack.com/workflows/",
    "hooks.slack.com/triggers/",
    "discord.com/api/webhooks/",
    "discordapp.com/api/webhooks/",
    "webhook.office.com/webhookb2/",
    "outlook.office.com/webhook/",
    "outlook.office365.com/webhook/",
    "hooks.zapier.com/hooks/",
    "maker.ifttt.com/trigger/",
    "tines.com/webhook/",
    "hook.eu1.make.com/",
    "hook.us1.make.com/",
    "hook.integromat.com/",
    "m.pipedream.net/",
    "events.pagerduty.com/integration/",
    "loggly.com/inputs/",
    "g.alchemy.com/v2/",
    "infura.io/v3/",
    "hc-ping.com/",
    "open.feishu.cn/open-apis/bot/v2/hook/",
    "open.larksuite.com/open-apis/bot/v2/hook/",
    "webexapis.com/v1/webhooks/incoming/",
    "hooks.chime.aws/incomingwebhooks/",
];

pub(super) fn webhook(path: &str, ahead: TextAhead<'_>) -> RuleMatch {
    if !ahead.is(0, path)? {
        return Ok(None);
    }
    let end = ahead.short_run(path.len(), 1024, |byte| {
        ByteClass::Path.fits(byte) || byte == b'@' || byte == b'.'
    })?;
    Ok((end - path.len() >= 20).then_some(path.len()..end))
}

/// `123456789:AA…`: the number is the bot's public id, the rest is the secret. In an API address the
/// number follows the word `bot`.
pub(super) fn telegram_token(behind: &[u8], ahead: TextAhead<'_>) -> RuleMatch {
    let digits = behind
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    if !(6..=12).contains(&digits) || !ahead.is(0, ":AA")? {
        return Ok(None);
    }
    let end = ahead.run(1, ByteClass::Token)?;
    Ok((end > 30).then_some(1..end))
}

/// The owner's id in base64, a time, a signature.
pub(super) fn discord_token(behind: &[u8], ahead: TextAhead<'_>) -> RuleMatch {
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
