//! What a cloud's client is told about rights, keys and what is recorded.
//!
//! Every cloud has some hundred services and thousands of calls, with more each month. They are named
//! alike, though: a verb that changes something, and the nouns of what it changes. So a call is asked
//! about by its verb and its nouns, whichever service it belongs to.

use super::acts::subcommands;
use super::{ProgramJudge, acts};
use crate::effective::ReducedCommand;
use crate::finding::{HarmCategory, HarmFinding};

/// Clients whose calls end in a verb after their nouns: `keyvault set-policy`, `sinks update`.
const NOUN_FIRST: &[&str] = &[
    "gcloud",
    "az",
    "oci",
    "ibmcloud",
    "aliyun",
    "doctl",
    "hcloud",
    "linode-cli",
    "scw",
    "yc",
    "exo",
    "vultr-cli",
    "openstack",
    "tccli",
    "civo",
    "heroku",
    "bq",
    "gsutil",
];

/// Verbs that only look, and those of looking at help.
const LOOKS: &[&str] = &[
    "list", "show", "describe", "get", "ls", "search", "help", "wait", "history", "tail", "view",
    "status", "batch", "lookup", "check", "test", "simulate", "validate", "generate", "head",
    "select", "query", "preview", "count", "read", "info", "download", "export", "scan",
];

const CHANGES: &[&str] = &[
    "create",
    "add",
    "put",
    "set",
    "update",
    "attach",
    "associate",
    "assign",
    "import",
    "upload",
    "register",
    "reset",
    "rotate",
    "regenerate",
    "renew",
    "enable",
    "grant",
    "authorize",
    "modify",
    "patch",
    "upsert",
    "allow",
    "share",
    "invite",
    "accept",
    "replace",
    "edit",
    "admin",
    "change",
    "expose",
    "open",
    "promote",
    "restore",
    "ch",
    "mk",
];

/// Nouns of who may do what, and of what lets somebody in.
const RIGHTS: &[&str] = &[
    "iam",
    "policy",
    "policies",
    "permission",
    "permissions",
    "acl",
    "acls",
    "grant",
    "grants",
    "binding",
    "bindings",
    "role",
    "roles",
    "credential",
    "credentials",
    "password",
    "passwords",
    "member",
    "members",
    "membership",
    "memberships",
    "owner",
    "owners",
    "federated",
    "federation",
    "oidc",
    "saml",
    "sas",
    "firewall",
    "apikey",
    "trust",
    "admin",
    "access",
    "passwd",
];

/// Services that record what happens, watch or guard.
const GUARDS: &[&str] = &[
    "cloudtrail",
    "guardduty",
    "macie2",
    "inspector",
    "inspector2",
    "securityhub",
    "detective",
    "configservice",
    "accessanalyzer",
    "wafv2",
    "waf",
    "shield",
    "network-firewall",
    "fms",
];

const RECORDS: &[&str] = &[
    "trail",
    "trails",
    "sink",
    "sinks",
    "audit",
    "auditing",
    "detector",
    "detectors",
    "recorder",
    "diagnostic",
    "defender",
    "sentinel",
    "retention",
    "lifecycle",
    "versioning",
];

/// A changed schedule or size is no right, though it is called a policy too.
const OF_WORK: &[&str] = &["scaling", "autoscaling", "autoscale"];

pub(super) fn judge(command: &ReducedCommand, _: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    let program = command.program();
    let aws = program == "aws";
    if !aws && !NOUN_FIRST.contains(&program)
        || command.has_arg("--help")
        || command.has_arg("-h")
        || command.has_arg("--dry-run")
        || command.has_arg("help")
    {
        return Vec::new();
    }
    let words = if aws {
        subcommands(command)
    } else {
        acts::call(command)
    };
    let call = CloudCall::of(&words, aws);
    let mut findings = Vec::new();
    if call.changes_rights() {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Privilege,
            "changes who may do what in the cloud",
        ));
    }
    if call.changes_records(command) {
        findings.push(HarmFinding::dangerous(
            HarmCategory::SecurityTool,
            "changes what is recorded, watched or kept in the cloud",
        ));
    }
    if call.shows_keys(command) {
        findings.push(HarmFinding::dangerous(
            HarmCategory::SecretRead,
            "prints or makes a key for the cloud",
        ));
    }
    if call.runs_there() {
        findings.push(HarmFinding::dangerous(
            HarmCategory::RemoteCode,
            "runs something on another machine",
        ));
    }
    if opens_to_all(command) {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Cloud,
            "opens something in the cloud",
        ));
    }
    findings
}

/// A call by its words: the service, what it does, and to what.
struct CloudCall<'w> {
    service: &'w str,
    /// The words of the call, `set-iam-policy` as three.
    tokens: Vec<&'w str>,
    /// The whole words, for those that mean something only as a whole.
    words: Vec<&'w str>,
    changes: bool,
}

impl<'w> CloudCall<'w> {
    fn of(words: &[&'w str], aws: bool) -> Self {
        // Behind the call stand the names of things, which say nothing.
        const FURTHEST: usize = 5;
        let named = |word: &&'w str| {
            word.starts_with(|c: char| c.is_ascii_lowercase())
                && word
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-:".contains(&b))
        };
        let call: Vec<&str> = words
            .iter()
            .copied()
            .take(if aws { 2 } else { FURTHEST })
            .take_while(named)
            .collect();
        let split = |word: &'w str| word.split(['-', ':']);
        let tokens: Vec<&str> = call.iter().copied().flat_map(split).collect();
        let changes = if aws {
            let verb = call
                .get(1)
                .map_or("", |word| split(word).next().unwrap_or_default());
            CHANGES.contains(&verb)
        } else {
            // The first word is a service, but where it holds the whole call: `access:add`.
            let service = usize::from(!call.first().is_some_and(|word| word.contains(':')));
            let calls = || call.iter().copied().skip(service);
            let verbs = || calls().filter_map(|word| split(word).next());
            let operations = || calls().flat_map(split);
            operations().any(|verb| CHANGES.contains(&verb))
                && !verbs().any(|verb| LOOKS.contains(&verb))
        };
        Self {
            service: call.first().copied().unwrap_or_default(),
            tokens,
            words: call,
            changes,
        }
    }

    fn says(&self, nouns: &[&str]) -> bool {
        self.tokens.iter().any(|token| nouns.contains(token))
    }

    fn changes_rights(&self) -> bool {
        if !self.changes {
            return false;
        }
        let user = self.says(&["user", "users", "local"]) && !self.says(&["data"]);
        let key = self.says(&["ssh", "sshkey"]) && self.says(&["key", "keys", "sshkey"])
            || self.says(&["api"]) && self.says(&["key", "keys"]);
        let account = self.service == "compute" && self.words.contains(&"set-service-account");
        let metadata = self.words.contains(&"add-metadata");
        let rights = self.says(RIGHTS) && !self.says(OF_WORK);
        let own = matches!(
            self.service,
            "configure" | "config" | "login" | "auth" | "account"
        );
        let iam = self.service == "iam" && !self.says(&["tag"]);
        !own && (rights || user || key || account || metadata || iam)
    }

    fn changes_records(&self, command: &ReducedCommand) -> bool {
        let guards = GUARDS.contains(&self.service)
            && (self.changes || self.says(&["disable", "stop", "suspend"]))
            && !self.says(&["create", "enable", "tag", "associate", "add"]);
        let excluded = command.long("--add-exclusion");
        let records = self.changes && self.says(RECORDS) && !self.says(&["create", "enable"]);
        guards || records || excluded
    }

    fn shows_keys(&self, command: &ReducedCommand) -> bool {
        let keys = self.says(&["key", "keys"]);
        let made = self.says(&["renew", "regenerate", "reset", "rotate"]);
        let sas = self.says(&["sas"]) && self.says(&["generate", "create"]);
        let listed = !self.words.contains(&"get-credentials")
            && self.says(&["list", "show", "get"])
            && (self.says(&["publishing", "credentials", "credential"])
                || self.words.contains(&"keys"))
            && !self.says(&["kms", "sshkey", "ssh", "create"])
            && matches!(command.program(), "az" | "oci");
        let admin = self.words.contains(&"get-credentials")
            && (command.has_arg("--admin") || command.has_arg("-a"));
        let assumed = self
            .words
            .iter()
            .any(|word| word.starts_with("assume-role"));
        let pressed = self.words.contains(&"send-ssh-public-key");
        keys && made || sas || listed || admin || assumed || pressed
    }

    fn runs_there(&self) -> bool {
        let run = self.words.contains(&"run-command") && self.says(&["invoke", "create"]);
        let extension =
            self.words.contains(&"extension") && self.changes && self.says(&["vm", "vmss"]);
        run || extension
    }
}

/// Options that say who may come in.
fn opens_to_all(command: &ReducedCommand) -> bool {
    const EVERYBODY: &[&str] = &[
        "public-read",
        "public-read-write",
        "authenticated-read",
        "allUsers",
        "allAuthenticatedUsers",
        "publicRead",
        "publicReadWrite",
        "ObjectRead",
        "ObjectReadWithoutList",
    ];
    let args = command.args();
    let named = args.iter().any(|arg| {
        let value = arg.s.rsplit('=').next().unwrap_or_default();
        EVERYBODY.contains(&value) || arg.s.contains("groups/global/A")
    });
    let pair = |flag: &str, value: &str| {
        command
            .values_of(flag)
            .iter()
            .any(|given| given.eq_ignore_ascii_case(value))
    };
    let all = pair("--source-ranges", "0.0.0.0/0")
        || pair("--authorized-networks", "0.0.0.0/0")
        || pair("--start-ip-address", "0.0.0.0")
        || pair("--allow-blob-public-access", "true")
        || pair("--public-access", "blob")
        || pair("--public-access", "container")
        || pair("--public-network-access", "enabled")
        || pair("--auth-type", "none")
        || command.has_arg("--no-public-access-prevention");
    named || all
}
