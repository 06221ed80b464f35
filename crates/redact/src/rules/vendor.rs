//! Keys that say by their first letters whose they are.
//!
//! The rows are facts: a prefix, what follows it, and how much of it at the least. A row costs nothing
//! in text that does not hold its first three bytes.

use PrefixBoundary::{Anywhere, Word};

use super::random::is_random;
use crate::byte_class::ByteClass::{self, Alnum, Base64, Dotted, Hex, Padded, Token, Upper};
use crate::filter::{KnownStart, key};
use crate::window::{RuleMatch, TextAhead, is_token, starts_word};

/// The prefix of the keys of one vendor, and their shape.
#[derive(Debug)]
pub(crate) struct VendorPrefix {
    pub(crate) text: &'static str,
    made_of: ByteClass,
    /// How many characters follow at the least.
    least: usize,
    begins: PrefixBoundary,
}

/// Where a key may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PrefixBoundary {
    /// The letters are telling enough to be believed in the middle of a word: `\x1b[31mghp_…`.
    Anywhere,
    /// The letters are also the end of ordinary words (`task-`), so a word must start here, and what
    /// follows must look drawn.
    Word,
}

/// A digit is looked for within this.
const LONGEST: usize = 128;

/// From this length on, capitals and small letters that change all the time need no digit.
const LEAST_DRAWN: usize = 8;

/// Shorter prefixes are met by chance in what was decoded.
const LEAST_TELLING: usize = 4;

/// No word is longer.
const LONGEST_WORD: usize = 25;

const fn row(
    text: &'static str,
    made_of: ByteClass,
    least: usize,
    begins: PrefixBoundary,
) -> VendorPrefix {
    VendorPrefix {
        text,
        made_of,
        least,
        begins,
    }
}

/// Shortest length the vendor gives out, or a little less.
pub(crate) static PREFIXES: &[VendorPrefix] = &[
    // models
    row("sk-ant-", Token, 20, Anywhere),
    row("sk-proj-", Token, 20, Anywhere),
    row("sk-svcacct-", Token, 20, Anywhere),
    row("sk-service-", Token, 20, Anywhere),
    row("sk-admin-", Token, 20, Anywhere),
    row("sk-or-v1-", Token, 20, Anywhere),
    row("sk-lf-", Token, 30, Word),
    row("pk-lf-", Token, 30, Word),
    row("sk-", Token, 20, Word),
    row("sk_", Hex, 48, Word),
    row("sess-", Alnum, 40, Word),
    row("gsk_", Alnum, 30, Anywhere),
    row("hf_", Alnum, 30, Word),
    row("hf_oauth_", Token, 30, Anywhere),
    row("api_org_", Alnum, 30, Anywhere),
    row("r8_", Token, 30, Word),
    row("xai-", Token, 30, Word),
    row("pplx-", Alnum, 30, Word),
    row("fw_", Alnum, 20, Word),
    row("fpk_", Alnum, 20, Word),
    row("tgp_v1_", Token, 30, Anywhere),
    row("nvapi-", Token, 30, Anywhere),
    row("AIza", Token, 35, Anywhere),
    row("csk-", Alnum, 40, Word),
    row("esecret_", Alnum, 20, Anywhere),
    row("lsv2_pt_", Token, 32, Anywhere),
    row("lsv2_sk_", Token, 32, Anywhere),
    row("ls__", Alnum, 30, Word),
    row("jina_", Token, 40, Word),
    row("voy-", Token, 30, Word),
    row("pa-", Token, 40, Word),
    row("pcsk_", Token, 50, Anywhere),
    row("wandb_v1_", Token, 30, Anywhere),
    row("bedrock-api-key-", Base64, 20, Anywhere),
    row("ABSK", Base64, 100, Word),
    row("cpk_", Dotted, 40, Word),
    row("tfp_", Token, 40, Word),
    row("tvly-", Token, 24, Word),
    row("fc-", Hex, 32, Word),
    row("salad_cloud_", Token, 16, Anywhere),
    row("rpa_", Alnum, 40, Word),
    row("llx-", Alnum, 40, Word),
    row("el_", Alnum, 40, Word),
    row("dg_", Alnum, 40, Word),
    row("unkey_", Alnum, 16, Anywhere),
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
    row("glrtr-", Dotted, 20, Word),
    row("glptt-", Token, 20, Anywhere),
    row("glcbt-", Token, 20, Anywhere),
    row("glffct-", Token, 18, Anywhere),
    row("glft-", Dotted, 18, Word),
    row("glimt-", Token, 20, Anywhere),
    row("glagent-", Token, 30, Anywhere),
    row("gloas-", Token, 40, Anywhere),
    row("glsoat-", Token, 18, Anywhere),
    row("glwt-", Token, 20, Word),
    row("GR1348941", Token, 18, Anywhere),
    row("npm_", Alnum, 30, Word),
    row("pypi-AgE", Token, 50, Anywhere),
    row("pypi-AgEN", Token, 50, Anywhere),
    row("rubygems_", Hex, 40, Anywhere),
    row("cio", Alnum, 32, Word),
    row("oy2", Alnum, 43, Word),
    row("CLOJARS_", Alnum, 50, Anywhere),
    row("dckr_pat_", Token, 20, Anywhere),
    row("dckr_oat_", Token, 20, Anywhere),
    row("PMAK-", Token, 30, Anywhere),
    row("PMAT-", Token, 20, Anywhere),
    row("AKCp", Alnum, 60, Word),
    row("cmVmdGtu", Alnum, 40, Word),
    row("cmVmd", Alnum, 55, Word),
    row("sgp_", Token, 40, Word),
    row("slk_", Hex, 60, Word),
    row("sgd_", Token, 40, Word),
    row("bkua_", Token, 36, Word),
    row("bkpt_", Token, 36, Word),
    row("CCIPAT_", Token, 40, Anywhere),
    row("CCIPRJ_", Token, 40, Anywhere),
    row("ATBB", Token, 24, Word),
    row("BBDC-", Base64, 40, Word),
    row("ATATT3", Base64, 50, Anywhere),
    row("ATCTT3", Base64, 50, Anywhere),
    row("ATSTT3", Base64, 50, Anywhere),
    row("API-", Upper, 26, Word),
    row("sqp_", Hex, 40, Word),
    row("sqa_", Hex, 40, Word),
    row("squ_", Hex, 40, Word),
    row("sonar_", Alnum, 30, Word),
    row("rdme_", Alnum, 50, Anywhere),
    row("shippo_live_", Hex, 32, Anywhere),
    row("shippo_test_", Hex, 32, Anywhere),
    row("snyk_uat.", Dotted, 30, Anywhere),
    row("ico-", Alnum, 32, Word),
    row("pnu_", Alnum, 30, Word),
    row("pnb_", Alnum, 30, Word),
    row("xox", Token, 40, Word),
    row("ddp_", Alnum, 30, Word),
    row("ddw_", Alnum, 30, Word),
    row("nfp_", Alnum, 30, Word),
    row("nfc_", Alnum, 30, Word),
    row("nfo_", Alnum, 30, Word),
    row("nfu_", Alnum, 30, Word),
    row("vcp_", Token, 24, Word),
    row("vca_", Token, 24, Word),
    row("vck_", Token, 24, Word),
    row("vcr_", Token, 24, Word),
    row("vci_", Token, 24, Word),
    row("vercel_blob_rw_", Token, 20, Anywhere),
    row("BBFF-", Alnum, 28, Word),
    row("thog-", Token, 16, Word),
    row("ngrok_", Token, 30, Word),
    row("cloudsmith_", Alnum, 30, Word),
    row("tk-us-", Token, 40, Word),
    row("tk-eu-", Token, 40, Word),
    // clouds
    row("AKIA", Upper, 16, Word),
    row("ASIA", Upper, 16, Word),
    row("ABIA", Upper, 16, Word),
    row("ACCA", Upper, 16, Word),
    row("A3T", Upper, 17, Word),
    row("AKLT", Token, 40, Word),
    row("AKID", Alnum, 32, Word),
    row("LTAI", Alnum, 16, Word),
    row("JDC_", Upper, 25, Word),
    row("ya29.", Token, 20, Anywhere),
    row("GOCSPX-", Token, 20, Anywhere),
    row("GOOG1", Upper, 50, Word),
    row("GOOG", Upper, 16, Word),
    row("1//0", Token, 30, Word),
    row("4/0A", Token, 30, Word),
    row("dop_v1_", Hex, 40, Anywhere),
    row("doo_v1_", Hex, 40, Anywhere),
    row("dor_v1_", Hex, 40, Anywhere),
    row("DO00", Upper, 16, Word),
    row("dapi", Hex, 32, Word),
    row("dkea", Hex, 32, Word),
    row("dose", Hex, 32, Word),
    row("ak-", Alnum, 20, Word),
    row("as-", Alnum, 20, Word),
    row("dtn_", Alnum, 40, Anywhere),
    row("fo1_", Token, 30, Word),
    row("fm1r_", Base64, 40, Word),
    row("fm1a_", Base64, 40, Word),
    row("fm2_", Base64, 40, Word),
    row("sbp_", Token, 40, Anywhere),
    row("sb_secret_", Token, 20, Anywhere),
    row("hvs.", Token, 20, Anywhere),
    row("hvb.", Token, 20, Anywhere),
    row("hvr.", Token, 20, Anywhere),
    row("b.AAAAA", Token, 40, Word),
    row("dp.pt.", Alnum, 40, Anywhere),
    row("dp.st.", Dotted, 40, Anywhere),
    row("dp.ct.", Alnum, 40, Anywhere),
    row("dp.sa.", Alnum, 40, Anywhere),
    row("dp.scim.", Alnum, 40, Anywhere),
    row("dp.audit.", Alnum, 40, Anywhere),
    row("tskey-", Token, 16, Anywhere),
    row("pscale_tkn_", Dotted, 30, Anywhere),
    row("pscale_pw_", Dotted, 30, Anywhere),
    row("pscale_oauth_", Dotted, 30, Anywhere),
    row("pscale_app_secret_", Dotted, 30, Anywhere),
    row("AGE-SECRET-KEY-1", Upper, 50, Anywhere),
    row("HRKU-", Token, 30, Anywhere),
    row("pul-", Hex, 40, Word),
    row("v1.0-", Token, 100, Word),
    row("cfat_", Alnum, 40, Word),
    row("cfut_", Alnum, 40, Word),
    row("cfk_", Alnum, 40, Word),
    row("4b1d", Alnum, 38, Word),
    row("napi_", Alnum, 40, Word),
    row("neon_", Alnum, 32, Word),
    row("AVNS_", Token, 16, Anywhere),
    row("aivenv1", Base64, 80, Word),
    row("ALZA", Alnum, 30, Word),
    row("sha256~", Token, 40, Word),
    row("kubeconfig-", Token, 40, Word),
    row("K10", Hex, 64, Word),
    row("rnd_", Alnum, 24, Word),
    row("rpat_", Alnum, 30, Word),
    row("railway_", Token, 30, Word),
    row("scw-", Token, 30, Word),
    row("SCW", Upper, 17, Word),
    row("hcloud_", Alnum, 50, Word),
    row("ops_eyJ", Base64, 60, Anywhere),
    row("A3-", Token, 30, Word),
    row("infisical_", Dotted, 30, Word),
    row("akmut_", Token, 20, Word),
    row("akab-", Dotted, 30, Word),
    row("tr_dev_", Alnum, 16, Anywhere),
    row("tr_prod_", Alnum, 16, Anywhere),
    row("EL1", Alnum, 40, Word),
    row("ey_", Token, 40, Word),
    row("fig_", Token, 30, Word),
    row("ms_live_", Alnum, 20, Anywhere),
    row("upstash_", Token, 30, Word),
    row("tb_", Token, 60, Word),
    row("p.eyJ", Dotted, 40, Word),
    row("ablp_", Token, 30, Word),
    row("CLI_", Alnum, 40, Word),
    row("sl.", Token, 60, Word),
    row("sl.u.", Token, 60, Word),
    // money
    row("sk_live_", Token, 16, Anywhere),
    row("sk_test_", Token, 16, Anywhere),
    row("sk_prod_", Token, 16, Anywhere),
    row("rk_live_", Alnum, 16, Anywhere),
    row("rk_test_", Alnum, 16, Anywhere),
    row("rk_prod_", Alnum, 16, Anywhere),
    row("pk_live_", Alnum, 20, Anywhere),
    row("ak_live_", Alnum, 20, Anywhere),
    row("whsec_", Base64, 24, Anywhere),
    row("shpat_", Hex, 32, Anywhere),
    row("shpca_", Hex, 32, Anywhere),
    row("shppa_", Hex, 32, Anywhere),
    row("shpss_", Hex, 32, Anywhere),
    row("shptka_", Hex, 32, Anywhere),
    row("shpua_", Hex, 32, Anywhere),
    row("shprt_", Hex, 32, Anywhere),
    row("sq0atp-", Token, 20, Anywhere),
    row("sq0csp-", Token, 20, Anywhere),
    row("sq0c", Token, 40, Word),
    row("EAAA", Token, 50, Word),
    row("EZAK", Alnum, 50, Word),
    row("EZTK", Alnum, 50, Word),
    row("FLWSECK_TEST-", Token, 12, Anywhere),
    row("FLWSECK-", Token, 12, Anywhere),
    row("FLWPUBK_TEST-", Token, 12, Anywhere),
    row("duffel_live_", Padded, 30, Anywhere),
    row("duffel_test_", Padded, 30, Anywhere),
    row("rzp_live_", Alnum, 14, Anywhere),
    row("rzp_test_", Alnum, 14, Anywhere),
    row("access_token$production$", Token, 20, Anywhere),
    row("access_token$sandbox$", Token, 20, Anywhere),
    row("access-sandbox-", Token, 30, Anywhere),
    row("access-production-", Token, 30, Anywhere),
    row("access-development-", Token, 30, Anywhere),
    row("live_", Token, 35, Word),
    row("test_", Alnum, 35, Word),
    row("APP_USR-", Token, 30, Word),
    row("TEST-", Token, 50, Word),
    row("pdl_live_", Token, 20, Anywhere),
    row("pdl_sdbx_", Token, 20, Anywhere),
    row("ramp_sec_", Alnum, 40, Anywhere),
    row("sk_us_", Token, 20, Anywhere),
    row("paddle_", Token, 30, Word),
    row("xnd_production_", Alnum, 30, Anywhere),
    row("xnd_development_", Alnum, 30, Anywhere),
    row("mollie_", Alnum, 30, Word),
    row("sandbox_", Token, 30, Word),
    row("sandbox-sq0", Token, 20, Anywhere),
    row("prod_", Alnum, 40, Word),
    row("sqco_", Alnum, 50, Word),
    row("clp_", Alnum, 40, Word),
    row("web_", Alnum, 32, Word),
    // people and messages
    row("xoxb-", Token, 10, Anywhere),
    row("xoxp-", Token, 10, Anywhere),
    row("xoxa-", Token, 10, Anywhere),
    row("xoxr-", Token, 10, Anywhere),
    row("xoxs-", Token, 10, Anywhere),
    row("xoxo-", Token, 10, Anywhere),
    row("xoxc-", Token, 10, Anywhere),
    row("xoxd-", Base64, 10, Anywhere),
    row("xoxe-", Token, 10, Anywhere),
    row("xoxe.", Token, 20, Anywhere),
    row("xapp-", Token, 10, Anywhere),
    row("xwfp-", Token, 10, Anywhere),
    row("SG.", Padded, 40, Word),
    row("key-", Alnum, 32, Word),
    row("pubkey-", Hex, 32, Word),
    row("xkeysib-", Token, 40, Anywhere),
    row("xsmtpsib-", Token, 40, Anywhere),
    row("mlsn.", Alnum, 60, Anywhere),
    row("re_", Token, 30, Word),
    row("md-", Token, 20, Word),
    row("SK", Hex, 32, Word),
    row("EAA", Alnum, 80, Word),
    row("IGQV", Token, 80, Word),
    row("mfa.", Token, 60, Word),
    row("ntn_", Alnum, 40, Word),
    row("secret_", Alnum, 40, Word),
    row("lin_api_", Alnum, 30, Anywhere),
    row("lin_oauth_", Alnum, 30, Anywhere),
    row("1PRK-", Token, 40, Anywhere),
    row("sq0idp-", Token, 20, Anywhere),
    row("figd_", Token, 20, Anywhere),
    row("figp_", Token, 30, Anywhere),
    row("figu_", Token, 30, Anywhere),
    row("CFPAT-", Token, 40, Anywhere),
    row("pat-na1-", Token, 30, Anywhere),
    row("pat-eu1-", Token, 30, Anywhere),
    row("pat-na2-", Token, 30, Anywhere),
    row("pat", Dotted, 70, Word),
    row("pat.", Dotted, 60, Word),
    row("sat.", Dotted, 60, Word),
    row("key", Alnum, 14, Word),
    row("fio-u-", Padded, 50, Anywhere),
    row("p8e-", Alnum, 30, Word),
    row("s-s4t2ud-", Hex, 60, Anywhere),
    row("s-s4t2af-", Hex, 60, Anywhere),
    row("u-s4t2ud-", Hex, 60, Anywhere),
    row("u-s4t2af-", Hex, 60, Anywhere),
    row("shltm_", Token, 36, Anywhere),
    row("typ_", Alnum, 40, Word),
    row("pk_", Token, 34, Word),
    row("bb_live_", Token, 20, Anywhere),
    row("aio_", Alnum, 24, Word),
    row("apify_api_", Token, 30, Anywhere),
    row("alcht_", Alnum, 28, Anywhere),
    row("sc_", Padded, 60, Word),
    row("ext_", Padded, 60, Word),
    row("scauth_", Padded, 40, Word),
    row("authress_", Padded, 40, Word),
    row("sm_aat_", Alnum, 16, Anywhere),
    row("sm_pat_", Alnum, 16, Anywhere),
    row("sm_sat_", Alnum, 16, Anywhere),
    row("1000.", Dotted, 60, Word),
    row("00D", Dotted, 80, Word),
    row("3MVG", Dotted, 40, Word),
    row("5AEP861", Dotted, 75, Word),
    row("sub-c-", Token, 30, Anywhere),
    row("pub-c-", Token, 30, Anywhere),
    row("sec-c-", Base64, 40, Anywhere),
    row("sdk-", Token, 36, Word),
    row("api-", Token, 36, Word),
    row("mob-", Token, 36, Word),
    row("VF.DM.", Dotted, 30, Anywhere),
    row("NF-", Alnum, 30, Word),
    row("endr+", Token, 16, Anywhere),
    row("flb_live_", Alnum, 18, Anywhere),
    row("rh-api-", Token, 30, Anywhere),
    row("rootly_", Hex, 50, Anywhere),
    row("oauth2v2_", Hex, 32, Anywhere),
    row("zpka_", Token, 30, Word),
    row("seam_", Token, 24, Word),
    row("courier_", Token, 24, Word),
    row("user_", Alnum, 40, Word),
    row("mapbox_", Token, 40, Word),
    row("sk.ey", Dotted, 60, Word),
    row("tk.ey", Dotted, 60, Word),
    row("ion_", Token, 40, Word),
    row("zs_", Token, 40, Word),
    row("tok_", Alnum, 24, Word),
    row("ory_at_", Dotted, 40, Anywhere),
    row("ory_rt_", Dotted, 40, Anywhere),
    row("ory_pat_", Alnum, 24, Anywhere),
    row("clerk_", Alnum, 40, Word),
    row("wg_", Alnum, 40, Word),
    row("frp_", Token, 40, Word),
    row("cal_live_", Hex, 30, Anywhere),
    row("cal_", Hex, 30, Word),
    row("tly_", Alnum, 30, Word),
    row("uw_", Token, 40, Word),
    // watching
    row("glsa_", Token, 32, Anywhere),
    row("glc_", Base64, 32, Word),
    row("eyJrIjoi", Base64, 60, Anywhere),
    row("sntrys_", Base64, 40, Anywhere),
    row("sntryu_", Hex, 40, Anywhere),
    row("sntryi_", Hex, 40, Anywhere),
    row("NRAK-", Upper, 20, Anywhere),
    row("NRII-", Token, 20, Anywhere),
    row("NRIQ-", Token, 20, Anywhere),
    row("NRBR-", Hex, 16, Anywhere),
    row("NRJS-", Hex, 16, Anywhere),
    row("NRRA-", Hex, 30, Anywhere),
    row("NRAA-", Hex, 20, Anywhere),
    row("NRSP-", Token, 20, Anywhere),
    row("dt0c01.", Dotted, 60, Anywhere),
    row("dt0s01.", Dotted, 60, Anywhere),
    row("dt0s02.", Dotted, 60, Anywhere),
    row("dt0s08.", Dotted, 60, Anywhere),
    row("phx_", Token, 30, Word),
    row("phc_", Token, 30, Word),
    row("phs_", Alnum, 30, Word),
    row("hcaik_", Alnum, 40, Anywhere),
    row("hcbik_", Alnum, 40, Anywhere),
    row("hcxik_", Alnum, 40, Anywhere),
    row("hcxmk_", Alnum, 40, Anywhere),
    row("hcalk_", Alnum, 40, Anywhere),
    row("logz_", Alnum, 30, Word),
    row("cxtp_", Alnum, 20, Anywhere),
    row("bt_", Alnum, 40, Word),
    row("ingest_", Token, 40, Word),
    row("xaat-", Token, 30, Word),
    row("xapt-", Token, 30, Word),
    row("oaa", Dotted, 60, Word),
    row("na1.", Base64, 80, Word),
    row("eu01xx", Hex, 26, Word),
    // middles of keys, whose beginning says nothing: what follows is enough to make them worthless
    row("T3BlbkFJ", Token, 20, Anywhere),
    row(".atlasv1.", Padded, 50, Anywhere),
    row("0Q~", Dotted, 28, Anywhere),
    row("1Q~", Dotted, 28, Anywhere),
    row("2Q~", Dotted, 28, Anywhere),
    row("3Q~", Dotted, 28, Anywhere),
    row("4Q~", Dotted, 28, Anywhere),
    row("5Q~", Dotted, 28, Anywhere),
    row("6Q~", Dotted, 28, Anywhere),
    row("7Q~", Dotted, 28, Anywhere),
    row("8Q~", Dotted, 28, Anywhere),
    row("9Q~", Dotted, 28, Anywhere),
];

impl VendorPrefix {
    /// The beginnings that make a closer look worth its while. A prefix of two letters has one for each
    /// character that may follow.
    pub(crate) fn starts(&self) -> Vec<KnownStart> {
        match self.text.as_bytes() {
            [a, b] => (0..=u8::MAX)
                .filter(|byte| self.made_of.fits(*byte))
                .map(|byte| KnownStart::Three(key([*a, *b, byte])))
                .collect(),
            longer => KnownStart::of(longer).into_iter().collect(),
        }
    }

    pub(crate) fn look(&self, behind: &[u8], ahead: TextAhead<'_>) -> RuleMatch {
        // Behind a plus it is the middle of base64.
        if self.begins == Word && (!starts_word(behind) || behind.ends_with(b"+")) {
            return Ok(None);
        }
        if !ahead.is(0, self.text)? {
            return Ok(None);
        }
        let from = self.text.len();
        let end = ahead.run(from, self.made_of)?;
        if end - from < self.least || self.ends_in_a_word(ahead, end)? {
            return Ok(None);
        }
        let start = ahead.slice(from..end.min(from + LONGEST));
        Ok((self.begins == Anywhere || self.looks_drawn(start)).then_some(0..end))
    }

    /// Whether a text begins with letters that are telling by themselves, and goes on.
    pub(super) fn begins(text: &[u8]) -> bool {
        PREFIXES
            .iter()
            .filter(|row| row.begins == Anywhere && row.text.len() >= LEAST_TELLING)
            .any(|row| text.len() > row.text.len() && text.starts_with(row.text.as_bytes()))
    }

    /// Few letters that nothing divides from the rest are the beginning of many names.
    fn looks_drawn(&self, body: &[u8]) -> bool {
        let plain =
            self.text.len() <= 3 && self.text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        looks_drawn(body) && (!plain || is_random(body, LEAST_DRAWN))
    }

    /// A short alphabet that ends in the middle of a word was met by chance.
    fn ends_in_a_word(
        &self,
        ahead: TextAhead<'_>,
        end: usize,
    ) -> Result<bool, crate::window::NeedMore> {
        let short = matches!(self.made_of, Hex | Upper | Alnum) && self.begins == Word;
        let goes_on = |byte: u8| is_token(byte) && byte != b'-';
        Ok(short && ahead.at(end)?.is_some_and(goes_on))
    }
}

fn looks_drawn(body: &[u8]) -> bool {
    let (mut digit, mut letter) = (false, false);
    for byte in body {
        digit |= byte.is_ascii_digit();
        letter |= byte.is_ascii_alphabetic();
    }
    if !letter {
        return false;
    }
    // Words with a number among them are a name.
    let mut parts = body.split(|byte| b"_-.".contains(byte));
    let plain = |part: &[u8]| {
        part.iter().all(u8::is_ascii_alphabetic) && !is_long_run(part) && !is_random(part, 16)
            || part.len() <= 4 && part.iter().all(u8::is_ascii_digit)
    };
    !parts.all(plain) && (digit || is_long_run(body) || is_random(body, LEAST_DRAWN))
}

/// More letters of one case in a row than any word has.
fn is_long_run(part: &[u8]) -> bool {
    part.len() >= LONGEST_WORD
        && (part.iter().all(u8::is_ascii_lowercase) || part.iter().all(u8::is_ascii_uppercase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_prefix_is_long_enough_for_the_filter() {
        for row in PREFIXES {
            assert!(row.text.len() >= 2, "{}", row.text);
            assert!(!row.starts().is_empty(), "{}", row.text);
            assert!(row.text.bytes().all(|byte| byte.is_ascii_graphic()));
        }
    }

    #[test]
    fn no_prefix_stands_there_twice() {
        let mut texts: Vec<_> = PREFIXES.iter().map(|row| (row.text, row.least)).collect();
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), PREFIXES.len());
    }
}
