//! Which of the gateways that share a store serves.

use std::fs;
use std::sync::Arc;

use hermetic_config::{Config, HomeFolder};
use hermetic_gateway::{ServingLease, StandByError, StandByTerms};
use hermetic_sandbox::Backend;
use hermetic_store::{GatewayProcess, LeaseState, RowOwner, SERVING, SeenGateway, Store};
use hermetic_types::{BackendKind, GatewayId, HolderEpoch, InstallationId};

use super::shared_work;
use crate::{AppFailure, StorePlace};

/// The right to serve, once nobody else has it; nothing where the store is a file, which one gateway has anyway.
pub(super) async fn serving_lease(
    store: &Store,
    (installation, home): (&InstallationId, &HomeFolder),
    backends: &[Arc<dyn Backend>],
    terms: StandByTerms,
) -> Result<Option<ServingLease>, AppFailure> {
    if !store.is_shared() {
        return Ok(None);
    }
    let process = GatewayProcess {
        // Another one with each start: a process that lost the lease must not get it back under its
        // old name.
        id: GatewayId::random(),
        installation: installation.clone(),
        host: host(home),
        name: name(home),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let distant: Vec<_> = backends
        .iter()
        .filter(|backend| backend.is_distant())
        .map(|backend| backend.kind())
        .collect();
    let (shares, process_ref, distant) = (terms.shares, &process, &distant);
    if shares {
        // Where nobody ever served, a command may have left some.
        only_distant_sandboxes(store).await?;
    }
    let admit = move |state| async move {
        can_go_on(store, process_ref, distant, state).await?;
        match shares {
            true => only_distant_sandboxes(store).await,
            false => Ok(()),
        }
    };
    let held = ServingLease::stand_by(store.leases(), &process, terms, admit).await;
    held.map(Some).map_err(|error| match error {
        StandByError::Refused(refusal) => refusal,
        StandByError::Store(error) => AppFailure::caused(&error, error.remedy()),
        StandByError::Stopped => AppFailure::new(
            "it was told to end while another gateway serves",
            "start it again to have it stand by",
        ),
    })
}

/// The store as whoever holds this lease writes to it.
pub(super) async fn fenced(store: Store, lease: &ServingLease) -> Result<Store, AppFailure> {
    let held = lease.held();
    if held.is_together() {
        return Ok(store.shared_by(held));
    }
    let store = store.fenced_by(held);
    // Several may have shared the work before, and left some under their own names.
    let gathered = store.shared_work().gather().await;
    gathered.map_err(|error| AppFailure::caused(&error, error.remedy()))?;
    Ok(store)
}

/// Whoever shares the work may have to go on with every sandbox there is.
async fn only_distant_sandboxes(store: &Store) -> Result<(), AppFailure> {
    let entries = store.ledger().entries(RowOwner::AnyGateway).await;
    let entries = entries.map_err(|error| AppFailure::caused(&error, error.remedy()))?;
    let mut bound = entries
        .iter()
        .filter(|entry| !shared_work::is_distant(entry.backend));
    let Some(first) = bound.next() else {
        return Ok(());
    };
    let others = match bound.count() {
        0 => String::new(),
        1 => ", nor is another one".to_owned(),
        others => format!(", nor are {others} others"),
    };
    Err(AppFailure::new(
        format!(
            "with gateway.share_work every sandbox has to be reached from every machine, and {} on {} is not{others}",
            first.id, first.backend,
        ),
        "remove them in the home that made them (`hermetic sandbox list`, `hermetic sandbox destroy`), or leave \
         gateway.share_work out",
    ))
}

/// Whether this gateway finds what the one that serves leaves behind. Sandboxes carry the installation's name,
/// and some are on the machine that made them.
async fn can_go_on(
    store: &Store,
    process: &GatewayProcess,
    distant: &[BackendKind],
    state: LeaseState,
) -> Result<(), AppFailure> {
    // Before the host is looked at: with another installation's keys nothing of what it left could
    // be used anywhere.
    if state.installation != process.installation.as_str() {
        return Err(AppFailure::new(
            format!(
                "this store belongs to installation {}, and this home is {}",
                state.installation,
                process.installation.as_str()
            ),
            "copy `state/installation` of the other home here, with its keys and rules (docs/guides/standby.md), \
             or give this home a store of its own",
        ));
    }
    if state.host == process.host {
        return Ok(());
    }
    let entries = store.ledger().entries(RowOwner::AnyGateway).await;
    let entries = entries.map_err(|error| AppFailure::caused(&error, error.remedy()))?;
    let left = entries
        .iter()
        .filter(|entry| !distant.contains(&entry.backend));
    match left.count() {
        0 => Ok(()),
        left => Err(AppFailure::new(
            format!(
                "{left} sandboxes of this installation are at {} (machine and home), where this gateway cannot reach them",
                state.host
            ),
            "start it there, or have sandboxes on a backend that every machine reaches (ssh, modal, daytona, kubernetes); \
             `hermetic sandbox destroy` there removes what is there",
        )),
    }
}

/// Conversations that change hands while one lease on serving lasts count below this many.
const HANDS_OF_ONE_LEASE: u64 = 1 << 20;

/// Since when this gateway serves, as wardens are told it: higher with each gateway that takes over.
pub(super) fn holder_epoch(lease: &ServingLease) -> HolderEpoch {
    let epoch = u64::try_from(lease.held().epoch()).unwrap_or_default();
    HolderEpoch::new(epoch.saturating_mul(HANDS_OF_ONE_LEASE))
}

/// What a person finds it by.
fn name(home: &HomeFolder) -> String {
    let system = rustix::system::uname();
    let machine = system.nodename().to_string_lossy();
    format!("{machine}:{}", home.root().display())
}

/// The machine and the home on it: some sandboxes are processes and folders there, and another home of the same
/// machine does not look for them. The machine's id outlives a change of its host name.
fn host(home: &HomeFolder) -> String {
    let id = fs::read_to_string("/etc/machine-id").unwrap_or_default();
    let machine = match id.trim() {
        "" => rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned(),
        id => id.to_owned(),
    };
    format!("{machine}:{}", home.root().display())
}

/// Everybody who shares the store, where that may be several.
pub async fn sharing_gateways(config: &Config) -> Result<Vec<SeenGateway>, AppFailure> {
    if matches!(StorePlace::of(config)?, StorePlace::File(_)) {
        return Ok(Vec::new());
    }
    let store = crate::store(config).await?;
    let gateways = store.leases().gateways(SERVING).await;
    gateways.map_err(|error| AppFailure::caused(&error, error.remedy()))
}
