//! Clouds and what is rented there.

use super::{Act, Judge};
use crate::effective::Effective;
use crate::finding::{Category, Finding};

const ACTS: &[Act] = &[
    Act::new(&["aws"], &["s3", "rb|rm|mv"], Category::Cloud, "deletes from a cloud store").unless(&["help", "--dryrun"]),
    Act::new(&["aws"], &["s3", "sync"], Category::Cloud, "deletes from a cloud store").with(&["--delete"]),
    Act::new(&["aws"], &["*", "delete-*|terminate-*|stop-*|deregister-*|remove-*|purge-*|disable-*|revoke-*|release-*|detach-*|reboot-*|schedule-key-deletion|deactivate-*|cancel-*"], Category::Cloud, "deletes or stops something in the cloud").unless(&["help", "--dry-run"]),
    Act::new(&["aws"], &["iam", "create-access-key|attach-*|put-*|create-user|add-user-to-group|create-login-profile|update-assume-role-policy|update-login-profile|create-policy-version"], Category::Privilege, "changes who may do what in the cloud").unless(&["help"]),
    Act::new(&["aws"], &["s3api|ec2|lambda|kms|cloudtrail", "put-bucket-policy|put-bucket-acl|authorize-*|add-permission|put-key-policy|modify-*|stop-logging|put-public-access-block|update-function-code"], Category::Cloud, "opens something in the cloud").unless(&["help"]),
    Act::new(&["gsutil"], &["rm|rb"], Category::Cloud, "deletes from a cloud store"),
    Act::new(&["gsutil"], &["iam|acl|defacl", "ch|set"], Category::Cloud, "opens something in the cloud"),
    Act::new(&["gsutil", "rclone"], &["rsync|sync|purge|delete|deletefile|rmdirs|cleanup|move"], Category::Cloud, "deletes from a cloud store").unless(&["--dry-run", "-n"]),
    Act::new(&["terraform", "tofu", "terragrunt"], &["destroy|state|taint|force-unlock|import|workspace", "*"], Category::Cloud, "destroys or forgets infrastructure").with(&["destroy", "rm", "mv", "push", "force-unlock", "taint", "delete", "replace-provider"]),
    Act::new(&["terraform", "tofu", "terragrunt"], &["destroy|force-unlock|taint"], Category::Cloud, "destroys infrastructure"),
    Act::new(&["terraform", "tofu", "terragrunt"], &["apply|run-all"], Category::Cloud, "changes infrastructure without asking").with(&["-auto-approve", "--auto-approve", "-destroy", "--terragrunt-non-interactive", "destroy"]),
    Act::new(&["pulumi"], &["destroy|stack|cancel|state"], Category::Cloud, "destroys infrastructure").unless(&["ls", "output", "select", "init", "history"]),
    Act::new(&["pulumi"], &["up"], Category::Cloud, "changes infrastructure without asking").with(&["-y", "--yes"]),
    Act::new(&["cdk", "sam", "serverless", "sls", "sst", "copilot", "eb"], &["destroy|remove|delete|terminate"], Category::Cloud, "destroys infrastructure"),
    Act::new(&["copilot"], &["app|svc|env|job", "delete"], Category::Cloud, "destroys infrastructure"),
    Act::new(&["heroku"], &["apps:destroy|pg:reset|ps:kill|addons:destroy|config:unset|pipelines:destroy|domains:remove|repo:reset"], Category::Cloud, "destroys an app"),
    Act::new(&["fly", "flyctl"], &["destroy"], Category::Cloud, "destroys an app"),
    Act::new(&["fly", "flyctl", "vercel", "netlify", "railway", "render", "wrangler", "supabase", "firebase"], &["apps|machine|machines|volumes|project|projects|env|sites|r2|kv|d1|secret|functions|hosting:disable|firestore:delete|database:remove|down|rm|remove|delete|destroy|db", "destroy|rm|delete|remove|reset|bucket|namespace|*"], Category::Cloud, "deletes something in the cloud").with(&["destroy", "rm", "delete", "remove", "reset", "hosting:disable", "firestore:delete", "database:remove", "sites:delete"]),
    Act::new(&["vercel"], &["rm|remove"], Category::Cloud, "deletes a deployment"),
    Act::new(&["firebase"], &["firestore:delete|database:remove|hosting:disable|functions:delete"], Category::Cloud, "deletes something in the cloud"),
    Act::new(&["doctl", "hcloud", "linode-cli", "vultr-cli", "exo", "scw", "oci", "ibmcloud", "civo", "openstack", "nova", "upctl"], &["*", "*"], Category::Cloud, "deletes something in the cloud").with(&["delete", "rm", "destroy", "terminate", "remove", "poweroff", "power-off", "shutdown", "rebuild", "reset"]),
    Act::new(&["doctl", "ibmcloud", "scw", "oci", "hcloud"], &["*", "*", "delete|rm|terminate|destroy"], Category::Cloud, "deletes something in the cloud"),
    Act::new(&["eksctl", "kops"], &["delete|drain"], Category::Cloud, "deletes a cluster"),
    Act::new(&["consul"], &["kv|leave|force-leave", "delete|*"], Category::Cloud, "deletes shared settings").with(&["delete", "leave", "force-leave"]),
    Act::new(&["vault"], &["delete|kv|secrets|operator|token|policy|auth", "delete|destroy|disable|seal|revoke|metadata|*"], Category::Cloud, "deletes or locks secrets").with(&["delete", "destroy", "disable", "seal", "revoke"]),
    Act::new(&["ansible"], &[], Category::RemoteCode, "changes other machines").with(&["state=absent", "-b", "--become"]),
    Act::new(&["salt", "salt-ssh", "mco"], &["*"], Category::RemoteCode, "runs a command on many machines").unless(&["test.ping", "grains.items"]),
    Act::new(&["restic", "borg", "velero", "duplicity", "kopia"], &[], Category::Destruction, "deletes backups").with(&["delete", "forget", "prune", "remove-older-than", "remove-all-but-n-full", "--prune", "purge"]),
    Act::new(&["netlify"], &["sites:delete|functions:delete|env:unset"], Category::Cloud, "deletes something in the cloud"),
    Act::new(&["knife"], &["*", "delete|bulk"], Category::Cloud, "deletes something on other machines"),
    Act::new(&["mc"], &["rm|rb|mirror"], Category::Cloud, "deletes from a cloud store").with(&["--force", "--recursive", "-r", "--remove"]),
    Act::new(&["s3cmd", "s5cmd", "s4cmd"], &["del|rb|rm|expire"], Category::Cloud, "deletes from a cloud store"),
    Act::new(&["azcopy"], &["remove|rm"], Category::Cloud, "deletes from a cloud store"),
    Act::new(&["cf"], &["delete|delete-*|d|stop|unbind-*"], Category::Cloud, "deletes an app"),
    Act::new(&["cloudflared"], &["tunnel", "delete"], Category::Cloud, "deletes a tunnel"),
    Act::new(&["npm", "pnpm", "yarn"], &["unpublish|deprecate|owner|access|token"], Category::Cloud, "changes a published package").unless(&["ls", "list", "--dry-run"]),
    Act::new(&["cargo"], &["yank|owner"], Category::Cloud, "changes a published package").unless(&["--list", "-l"]),
    Act::new(&["gem"], &["yank|owner"], Category::Cloud, "changes a published package"),
];

pub(super) fn judge(command: &Effective, _: &Judge<'_>) -> Vec<Finding> {
    let mut findings = super::acts::look_up(ACTS, command);
    if matches!(
        command.program(),
        "gcloud" | "az" | "bq" | "aliyun" | "tccli" | "yc"
    ) {
        let words = super::acts::subcommands(command);
        let deletes = words.iter().take(5).any(|word| {
            matches!(
                *word,
                "delete"
                    | "destroy"
                    | "remove"
                    | "rm"
                    | "purge"
                    | "stop"
                    | "deallocate"
                    | "reset"
                    | "disable"
                    | "delete-batch"
                    | "restart"
                    | "rb"
                    | "delete-instances"
                    | "shutdown"
                    | "abandon-instances"
            )
        }) || command.program() == "bq" && command.has_arg("rm");
        if deletes {
            findings.push(Finding::dangerous(
                Category::Cloud,
                "deletes or stops something in the cloud",
            ));
        }
        let grants = words.iter().any(|word| {
            matches!(
                *word,
                "add-iam-policy-binding" | "set-iam-policy" | "create-for-rbac"
            ) || (*word == "assignment" && words.contains(&"create"))
        });
        if grants {
            findings.push(Finding::dangerous(
                Category::Privilege,
                "changes who may do what in the cloud",
            ));
        }
        if command.program() == "gcloud" && words.contains(&"keys") && words.contains(&"create") {
            findings.push(Finding::dangerous(
                Category::SecretRead,
                "makes a new key for the cloud",
            ));
        }
    }
    if matches!(command.program(), "curl" | "http" | "https" | "xh" | "wget") {
        let deletes = command
            .values_of("-X")
            .iter()
            .chain(&command.values_of("--request"))
            .chain(&command.values_of("--method"))
            .any(|method| method.eq_ignore_ascii_case("DELETE"))
            || matches!(command.program(), "http" | "https" | "xh")
                && command.operand(0) == "DELETE";
        let local = command.args().iter().any(|arg| {
            arg.s.contains("localhost") || arg.s.contains("127.0.0.1") || arg.s.contains("[::1]")
        });
        if deletes && !local {
            findings.push(Finding::dangerous(
                Category::Cloud,
                "deletes something on another machine (HTTP DELETE)",
            ));
        }
    }
    findings
}
