//! Whether gateways on one store may serve together, and what commands may not do beside them.
//!
//! Everything that a conversation needs has to be reached from every machine, and nothing that is counted may be
//! counted in one process alone. Where that is not so, a gateway that was told to share does not start: alone it
//! would keep those out that share, without a word.

use std::collections::BTreeMap;

use hermetic_config::{Config, DayBudget, ResolvedBackend};
use hermetic_store::{LeaseHolder, SERVING, Store};
use hermetic_types::BackendKind;

use super::toolsets::BackendOverrides;
use super::{StorePlace, platforms};
use crate::AppFailure;

const ALONE: &str =
    "or leave gateway.share_work out, and one gateway serves while the others stand by";

/// What keeps this gateway from serving together with others, if it is to.
pub(crate) fn refusals(config: &Config, resolved: &ResolvedBackend) -> Vec<AppFailure> {
    if !config.gateway().share_work {
        return Vec::new();
    }
    let refuse = |what: String, remedy: &str| AppFailure::new(what, format!("{remedy}, {ALONE}"));
    let mut refusals = Vec::new();
    if matches!(StorePlace::of(config), Ok(StorePlace::File(_))) {
        refusals.push(refuse(
            "gateway.share_work needs a store that several gateways reach".to_owned(),
            "write gateway.store: postgres://user:password@host/database",
        ));
    }
    for (key, kind) in used_backends(config, resolved) {
        if !is_distant(kind) {
            refusals.push(refuse(
                format!("with gateway.share_work, {key} cannot be {kind}: its sandboxes belong to one machine"),
                &format!("write {key}: ssh, modal, daytona or kubernetes"),
            ));
        }
    }
    refusals.extend(platforms::bound_to_one_process(config).into_iter().map(
        |account| {
            refuse(
                format!(
                    "with gateway.share_work, {account} cannot be served: only the gateway that listens to it can answer"
                ),
                "have Telegram by polling alone (no webhook_url) and disable the other platforms (platforms.NAME.enabled: false)",
            )
        },
    ));
    if config.gateway().dashboard.enabled {
        refusals.push(refuse(
            "with gateway.share_work there is no dashboard: its pages and its chat know of one gateway alone".to_owned(),
            "write gateway.dashboard.enabled: false",
        ));
    }
    let budgets = config.budgets();
    let counts_here = |budget: &DayBudget| budget.bytes_out.is_some();
    for (key, budget) in [
        ("person", &budgets.person),
        ("conversation", &budgets.conversation),
        ("all", &budgets.all),
    ] {
        if counts_here(budget) {
            refusals.push(refuse(
                format!(
                    "with gateway.share_work, budgets.{key}.bytes_out would not be kept: each gateway counts its own"
                ),
                &format!("leave budgets.{key}.bytes_out out"),
            ));
        }
    }
    refusals
}

/// Every backend that conversations run on, by the key that chooses it.
pub(crate) fn used_backends(
    config: &Config,
    resolved: &ResolvedBackend,
) -> BTreeMap<String, BackendKind> {
    let overrides = BackendOverrides::read(config, resolved);
    let own = overrides.kinds();
    let own = own.map(|(platform, kind)| (format!("platforms.{platform}.terminal_backend"), kind));
    let usual = ("gateway.terminal_backend".to_owned(), resolved.backend);
    own.chain([usual]).collect()
}

/// Whether sandboxes of this kind are reached from every machine.
pub(crate) fn is_distant(kind: BackendKind) -> bool {
    match kind {
        BackendKind::Ssh | BackendKind::Modal | BackendKind::Daytona | BackendKind::Kubernetes => {
            true
        }
        BackendKind::Native
        | BackendKind::Docker
        | BackendKind::Singularity
        | BackendKind::Local => false,
    }
}

/// Before a command beside the gateways makes or takes up a sandbox with a row in the ledger. Whoever shares the work
/// takes up every row that no gateway has, at any moment, and would settle what the command is making.
pub async fn refuse_beside_shared_work(config: &Config, store: &Store) -> Result<(), AppFailure> {
    if !store.is_shared() {
        return Ok(());
    }
    let serving = store.leases().look(SERVING).await;
    let serving = serving.map_err(|error| AppFailure::caused(&error, error.remedy()))?;
    let holder = serving.and_then(|state| state.holder);
    // The line alone is enough: they may begin while the command runs.
    if !config.gateway().share_work && !holder.as_ref().is_some_and(LeaseHolder::is_together) {
        return Ok(());
    }
    Err(AppFailure::new(
        "gateways share the work of this store, and take up every sandbox in it that none of them has",
        "use `hermetic exec` without --session, whose sandbox has no row, or a home with a store of its own",
    ))
}

#[cfg(test)]
#[cfg(feature = "telegram")]
mod tests {
    use hermetic_config::resolve_gateway_backend;

    use super::*;
    use crate::platforms::tests::config;

    const SHARES: &str = "telegram: {token: '1:a-token-of-the-bot'}\n\
         terminal: {ssh_host: host.example, ssh_user: someone}\n";

    fn gateway(more: &str) -> String {
        format!(
            "{SHARES}gateway: {{share_work: true, terminal_backend: ssh, store: 'postgres://h@db.example/h', {more}}}\n"
        )
    }

    fn refused(text: &str) -> Vec<String> {
        let config = config(text);
        let resolved = resolve_gateway_backend(&config).unwrap();
        let refusals = refusals(&config, &resolved);
        let words = |refusal: AppFailure| format!("{refusal} / {}", refusal.remedy());
        refusals.into_iter().map(words).collect()
    }

    #[track_caller]
    fn is_refused_for(text: &str, key: &str) {
        let refused = refused(text);
        assert!(
            matches!(&*refused, [only] if only.contains(key)),
            "{refused:#?}"
        );
    }

    #[test]
    fn only_what_is_reached_from_everywhere_is_shared() {
        const OFF: &str = "dashboard: {enabled: false}";
        assert_eq!(refused(&gateway(OFF)), [""; 0]);
        is_refused_for(&gateway(""), "gateway.dashboard.enabled: false");
        let local = gateway(OFF).replace("terminal_backend: ssh", "terminal_backend: local");
        is_refused_for(&local, "gateway.terminal_backend: ssh");
        let file = gateway(OFF).replace("postgres://h@db.example/h", "");
        is_refused_for(&file, "gateway.store: postgres://");
        let with = |more: &str| format!("{}{more}\n", gateway(OFF));
        is_refused_for(
            &with("budgets: {person: {bytes_out: 1000}}"),
            "budgets.person.bytes_out",
        );
        is_refused_for(
            &with("discord: {token: 'another-token-of-the-bot'}"),
            "discord",
        );
        let apart = gateway(OFF).replace(
            "telegram: {token",
            "telegram: {terminal_backend: native, token",
        );
        is_refused_for(&apart, "platforms.telegram.terminal_backend");
    }

    #[test]
    fn nobody_who_was_not_told_to_share_is_refused() {
        assert_eq!(refused("gateway: {terminal_backend: local}\n"), [""; 0]);
    }
}
