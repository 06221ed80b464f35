//! Clouds and what is rented there.

use super::{HarmfulAct, ProgramJudge};
use crate::effective::ReducedCommand;
use crate::finding::{HarmCategory, HarmFinding};

const ACTS: &[HarmfulAct] = &[
    HarmfulAct::new(&["aws"], &["s3", "rb|rm|mv"], HarmCategory::Cloud, "deletes from a cloud store").unless(&["help", "--dryrun"]),
    HarmfulAct::new(&["aws"], &["s3", "sync"], HarmCategory::Cloud, "deletes from a cloud store").with(&["--delete"]),
    HarmfulAct::new(&["aws"], &["*", "delete-*|terminate-*|stop-*|deregister-*|remove-*|purge-*|disable-*|revoke-*|release-*|detach-*|reboot-*|schedule-key-deletion|deactivate-*|cancel-*"], HarmCategory::Cloud, "deletes or stops something in the cloud").unless(&["help", "--dry-run"]),
    HarmfulAct::new(&["aws"], &["iam", "create-access-key|attach-*|put-*|create-user|add-user-to-group|create-login-profile|update-assume-role-policy|update-login-profile|create-policy-version"], HarmCategory::Privilege, "changes who may do what in the cloud").unless(&["help"]),
    HarmfulAct::new(&["aws"], &["s3api|ec2|lambda|kms|cloudtrail", "put-bucket-policy|put-bucket-acl|authorize-*|add-permission|put-key-policy|modify-*|stop-logging|put-public-access-block|update-function-code"], HarmCategory::Cloud, "opens something in the cloud").unless(&["help"]),
    HarmfulAct::new(&["aws"], &["organizations", "leave-organization|close-account|remove-account-from-organization"], HarmCategory::Cloud, "gives up an account in the cloud"),
    HarmfulAct::new(&["aws"], &["rds|redshift|docdb|neptune", "modify-*"], HarmCategory::Cloud, "changes who may use a database").with(&["--master-user-password", "--publicly-accessible"]),
    HarmfulAct::new(&["az"], &["network"], HarmCategory::Cloud, "opens something in the cloud").with(&["*", "0.0.0.0/0", "Internet", "Any"]),
    HarmfulAct::new(&["gsutil"], &["rm|rb"], HarmCategory::Cloud, "deletes from a cloud store"),
    HarmfulAct::new(&["gsutil"], &["iam|acl|defacl", "ch|set"], HarmCategory::Cloud, "opens something in the cloud"),
    HarmfulAct::new(&["gsutil", "rclone"], &["rsync|sync|purge|delete|deletefile|rmdirs|cleanup|move"], HarmCategory::Cloud, "deletes from a cloud store").unless(&["--dry-run", "-n"]),
    HarmfulAct::new(&["terraform", "tofu", "terragrunt"], &["destroy|state|taint|force-unlock|import|workspace", "*"], HarmCategory::Cloud, "destroys or forgets infrastructure").with(&["destroy", "rm", "mv", "push", "force-unlock", "taint", "delete", "replace-provider"]),
    HarmfulAct::new(&["terraform", "tofu", "terragrunt"], &["destroy|force-unlock|taint"], HarmCategory::Cloud, "destroys infrastructure"),
    HarmfulAct::new(&["terraform", "tofu", "terragrunt"], &["apply|run-all"], HarmCategory::Cloud, "changes infrastructure without asking").with(&["-auto-approve", "--auto-approve", "-destroy", "--terragrunt-non-interactive", "destroy"]),
    HarmfulAct::new(&["pulumi"], &["destroy|stack|cancel|state"], HarmCategory::Cloud, "destroys infrastructure").unless(&["ls", "output", "select", "init", "history"]),
    HarmfulAct::new(&["pulumi"], &["up"], HarmCategory::Cloud, "changes infrastructure without asking").with(&["-y", "--yes"]),
    HarmfulAct::new(&["cdk", "sam", "serverless", "sls", "sst", "copilot", "eb"], &["destroy|remove|delete|terminate"], HarmCategory::Cloud, "destroys infrastructure"),
    HarmfulAct::new(&["copilot"], &["app|svc|env|job", "delete"], HarmCategory::Cloud, "destroys infrastructure"),
    HarmfulAct::new(&["heroku"], &["apps:destroy|pg:reset|ps:kill|addons:destroy|config:unset|pipelines:destroy|domains:remove|repo:reset|access:remove|members:remove|clients:destroy|container:rm|domains:clear|certs:remove|drains:remove|keys:clear|keys:remove|spaces:destroy|apps:leave"], HarmCategory::Cloud, "destroys an app"),
    HarmfulAct::new(&["fly", "flyctl"], &["destroy"], HarmCategory::Cloud, "destroys an app"),
    HarmfulAct::new(&["fly", "flyctl", "vercel", "netlify", "railway", "render", "wrangler", "supabase", "firebase"], &["apps|machine|machines|volumes|project|projects|env|sites|r2|kv|d1|secret|secrets|certs|domain|domains|dns|alias|teams|team|integration|postgres|mpg|redis|storage|functions|hosting:disable|firestore:delete|database:remove|down|rm|remove|delete|destroy|db", "*"], HarmCategory::Cloud, "deletes something in the cloud").with(&["destroy", "rm", "delete", "remove", "reset", "unset", "hosting:disable", "firestore:delete", "database:remove", "sites:delete"]),
    HarmfulAct::new(&["vercel"], &["rm|remove"], HarmCategory::Cloud, "deletes a deployment"),
    HarmfulAct::new(&["firebase"], &["firestore:delete|database:remove|hosting:disable|functions:delete"], HarmCategory::Cloud, "deletes something in the cloud"),
    HarmfulAct::new(&["doctl", "hcloud", "linode-cli", "vultr-cli", "exo", "scw", "oci", "ibmcloud", "civo", "openstack", "nova", "upctl"], &["*", "*"], HarmCategory::Cloud, "deletes something in the cloud").with(&["delete", "rm", "destroy", "terminate", "remove", "poweroff", "power-off", "shutdown", "rebuild", "reset"]),
    HarmfulAct::new(&["doctl", "ibmcloud", "scw", "oci", "hcloud"], &["*", "*", "delete|rm|terminate|destroy"], HarmCategory::Cloud, "deletes something in the cloud"),
    HarmfulAct::new(&["eksctl", "kops"], &["delete|drain"], HarmCategory::Cloud, "deletes a cluster"),
    HarmfulAct::new(&["consul"], &["kv|leave|force-leave", "delete|*"], HarmCategory::Cloud, "deletes shared settings").with(&["delete", "leave", "force-leave"]),
    HarmfulAct::new(&["vault"], &["delete|kv|secrets|operator|token|policy|auth", "delete|destroy|disable|seal|revoke|metadata|*"], HarmCategory::Cloud, "deletes or locks secrets").with(&["delete", "destroy", "disable", "seal", "revoke"]),
    HarmfulAct::new(&["ansible"], &[], HarmCategory::RemoteCode, "changes other machines").with(&["state=absent", "-b", "--become"]),
    HarmfulAct::new(&["salt", "salt-ssh", "mco"], &["*"], HarmCategory::RemoteCode, "runs a command on many machines").unless(&["test.ping", "grains.items"]),
    HarmfulAct::new(&["restic", "borg", "velero", "duplicity", "kopia"], &[], HarmCategory::Destruction, "deletes backups").with(&["delete", "forget", "prune", "remove-older-than", "remove-all-but-n-full", "--prune", "purge"]),
    HarmfulAct::new(&["netlify"], &["sites:delete|functions:delete|env:unset"], HarmCategory::Cloud, "deletes something in the cloud"),
    HarmfulAct::new(&["knife"], &["*", "delete|bulk"], HarmCategory::Cloud, "deletes something on other machines"),
    HarmfulAct::new(&["mc"], &["rm|rb|mirror"], HarmCategory::Cloud, "deletes from a cloud store").with(&["--force", "--recursive", "-r", "--remove"]),
    HarmfulAct::new(&["s3cmd", "s5cmd", "s4cmd"], &["del|rb|rm|expire"], HarmCategory::Cloud, "deletes from a cloud store"),
    HarmfulAct::new(&["azcopy"], &["remove|rm"], HarmCategory::Cloud, "deletes from a cloud store"),
    HarmfulAct::new(&["cf"], &["delete|delete-*|d|stop|unbind-*"], HarmCategory::Cloud, "deletes an app"),
    HarmfulAct::new(&["cloudflared"], &["tunnel", "delete"], HarmCategory::Cloud, "deletes a tunnel"),
    HarmfulAct::new(&["npm", "pnpm", "yarn"], &["unpublish|deprecate|owner|access|token"], HarmCategory::Cloud, "changes a published package").unless(&["ls", "list", "--dry-run"]),
    HarmfulAct::new(&["yarn"], &["npm", "unpublish|deprecate|owner|access|token|tag"], HarmCategory::Cloud, "changes a published package"),
    HarmfulAct::new(&["cargo"], &["yank|owner"], HarmCategory::Cloud, "changes a published package").unless(&["--list", "-l"]),
    HarmfulAct::new(&["gem"], &["yank|owner"], HarmCategory::Cloud, "changes a published package"),
];

pub(super) fn judge(command: &ReducedCommand, _: &ProgramJudge<'_>) -> Vec<HarmFinding> {
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
            findings.push(HarmFinding::dangerous(
                HarmCategory::Cloud,
                "deletes or stops something in the cloud",
            ));
        }
        let grants = words.iter().any(|word| {
            matches!(
                *word,
                "add-iam-policy-binding" | "set-iam-policy" | "create-for-rbac"
            ) || (*word == "roles" && command.long("--add-permissions"))
                || (*word == "assignment" && words.contains(&"create"))
        });
        if grants {
            findings.push(HarmFinding::dangerous(
                HarmCategory::Privilege,
                "changes who may do what in the cloud",
            ));
        }
        if command.program() == "gcloud" && words.contains(&"keys") && words.contains(&"create") {
            findings.push(HarmFinding::dangerous(
                HarmCategory::SecretRead,
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
            findings.push(HarmFinding::dangerous(
                HarmCategory::Cloud,
                "deletes something on another machine (HTTP DELETE)",
            ));
        }
    }
    findings
}
