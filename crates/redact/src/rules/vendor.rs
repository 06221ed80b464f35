//! Keys that say by their first letters whose they are.

use Begins::{Anywhere, Word};

use crate::class::Class::{self, Alnum, Dotted, Hex, Token, Upper};
use crate::window::{Ahead, Found, starts_word};

#[derive(Debug)]
pub(crate) struct Prefix {
    pub(crate) text: &'static str,
    made_of: Class,
    /// How many characters follow at the least.
    least: usize,
    begins: Begins,
}

/// Where a key may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begins {
    /// The letters are telling enough to be believed in the middle of a word: `\x1b[31mghp_…`.
    Anywhere,
    /// The letters are also the end of ordinary words (`task-`), so a word must start here, and what
    /// follows must hold a digit.
    Word,
}

/// A digit is looked for within this.
const LONGEST: usize = 512;

const fn row(text: &'static str, made_of: Class, least: usize, begins: Begins) -> Prefix {
    Prefix {
        text,
        made_of,
        least,
        begins,
    }
}

/// Shortest length the vendor gives out, or a little less.
pub(crate) static PREFIXES: &[Prefix] = &[
    // models
    row("sk-ant-", Token, 20, Anywhere),
    row("sk-proj-", Token, 20, Anywhere),
    row("sk-svcacct-", Token, 20, Anywhere),
    row("sk-or-v1-", Token, 20, Anywhere),
    row("sk-", Token, 20, Word),
    row("gsk_", Alnum, 30, Anywhere),
    row("hf_", Alnum, 30, Word),
    row("api_org_", Alnum, 30, Anywhere),
    row("r8_", Alnum, 30, Word),
    row("xai-", Alnum, 30, Word),
    row("pplx-", Alnum, 30, Word),
    row("fw_", Alnum, 20, Word),
    row("tgp_v1_", Token, 30, Anywhere),
    row("nvapi-", Token, 30, Anywhere),
    row("AIza", Token, 35, Anywhere),
    // code and packages
    row("ghp_", Alnum, 30, Anywhere),
    row("gho_", Alnum, 30, Anywhere),
    row("ghu_", Alnum, 30, Anywhere),
    row("ghs_", Alnum, 30, Anywhere),
    row("ghr_", Alnum, 30, Anywhere),
    row("github_pat_", Token, 22, Anywhere),
    row("glpat-", Dotted, 20, Anywhere),
    row("gldt-", Token, 20, Word),
    row("glrt-", Dotted, 20, Word),
    row("glptt-", Token, 20, Anywhere),
    row("npm_", Alnum, 30, Word),
    row("pypi-AgE", Token, 50, Anywhere),
    row("rubygems_", Hex, 40, Anywhere),
    row("dckr_pat_", Token, 20, Anywhere),
    row("PMAK-", Token, 30, Anywhere),
    // clouds
    row("AKIA", Upper, 16, Word),
    row("ASIA", Upper, 16, Word),
    row("ABIA", Upper, 16, Word),
    row("ACCA", Upper, 16, Word),
    row("ya29.", Token, 20, Anywhere),
    row("GOCSPX-", Token, 20, Anywhere),
    row("dop_v1_", Hex, 40, Anywhere),
    row("doo_v1_", Hex, 40, Anywhere),
    row("dor_v1_", Hex, 40, Anywhere),
    row("dapi", Hex, 32, Word),
    row("ak-", Alnum, 20, Word),
    row("as-", Alnum, 20, Word),
    row("dtn_", Alnum, 40, Anywhere),
    row("fo1_", Token, 30, Word),
    row("fm2_", Token, 40, Word),
    row("sbp_", Hex, 40, Anywhere),
    row("hvs.", Token, 20, Anywhere),
    row("hvb.", Token, 20, Anywhere),
    row("dp.pt.", Alnum, 40, Anywhere),
    row("tskey-", Token, 16, Anywhere),
    row("pscale_tkn_", Dotted, 30, Anywhere),
    row("pscale_pw_", Dotted, 30, Anywhere),
    row("AGE-SECRET-KEY-1", Upper, 50, Anywhere),
    // money
    row("sk_live_", Alnum, 16, Anywhere),
    row("sk_test_", Alnum, 16, Anywhere),
    row("rk_live_", Alnum, 16, Anywhere),
    row("rk_test_", Alnum, 16, Anywhere),
    row("whsec_", Alnum, 24, Anywhere),
    row("shpat_", Hex, 32, Anywhere),
    row("shpca_", Hex, 32, Anywhere),
    row("shppa_", Hex, 32, Anywhere),
    row("shpss_", Hex, 32, Anywhere),
    row("sq0atp-", Token, 22, Anywhere),
    row("sq0csp-", Token, 22, Anywhere),
    // people and messages
    row("xoxb-", Token, 10, Anywhere),
    row("xoxp-", Token, 10, Anywhere),
    row("xoxa-", Token, 10, Anywhere),
    row("xoxr-", Token, 10, Anywhere),
    row("xoxs-", Token, 10, Anywhere),
    row("xoxc-", Token, 10, Anywhere),
    row("xoxd-", Token, 10, Anywhere),
    row("xoxe.", Token, 20, Anywhere),
    row("xapp-", Token, 10, Anywhere),
    row("SG.", Dotted, 40, Word),
    row("key-", Hex, 32, Word),
    row("EAA", Alnum, 80, Word),
    row("mfa.", Token, 60, Word),
    row("ntn_", Alnum, 40, Word),
    row("secret_", Alnum, 40, Word),
    row("lin_api_", Alnum, 30, Anywhere),
    row("figd_", Token, 20, Anywhere),
    row("ATATT3", Token, 50, Anywhere),
    // watching
    row("glsa_", Token, 32, Anywhere),
    row("glc_", Token, 40, Word),
    row("sntrys_", Token, 40, Anywhere),
    row("sntryu_", Hex, 40, Anywhere),
    row("NRAK-", Upper, 20, Anywhere),
];

impl Prefix {
    pub(crate) fn look(&self, behind: &[u8], ahead: Ahead<'_>) -> Found {
        if self.begins == Word && !starts_word(behind) {
            return Ok(None);
        }
        if !ahead.is(0, self.text)? {
            return Ok(None);
        }
        let from = self.text.len();
        let end = ahead.run(from, self.made_of)?;
        if end - from < self.least {
            return Ok(None);
        }
        let start = ahead.slice(from..end.min(from + LONGEST));
        let has_digit = start.iter().any(u8::is_ascii_digit);
        Ok((has_digit || self.begins == Anywhere).then_some(0..end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_prefix_is_long_enough_for_the_filter() {
        for row in PREFIXES {
            assert!(row.text.len() >= 3, "{}", row.text);
            assert!(row.text.bytes().all(|byte| Dotted.fits(byte)));
        }
    }
}
