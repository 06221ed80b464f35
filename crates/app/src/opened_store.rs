//! The store of a home, opened for a command beside the gateway.

use std::fs::{File, TryLockError};

use hermetic_config::{Config, HomeFolder};
use hermetic_store::Store;
use hermetic_types::{GatewayId, SharedClock, SystemClock};

use super::{AppFailure, StorePlace};

/// The store of this home, for a command beside the gateway.
///
/// A gateway of an earlier version that still runs could not read what a newer one writes, and would go
/// deaf: its store is brought up to date when it is restarted, and not by a command before that.
pub async fn store(config: &Config) -> Result<Store, AppFailure> {
    let place = StorePlace::of(config)?;
    let StorePlace::File(path) = &place else {
        // A program of the step before goes on beside one of this: see 0181.
        return open_store(place, SystemClock::shared()).await;
    };
    if is_gateway_running(config.home()) && Store::is_of_earlier_version(path).await {
        return Err(AppFailure::new(
            "the gateway that runs here is of an earlier version, and this command would change its \
             store under it",
            "restart it first: hermetic gateway restart",
        ));
    }
    open_store(place, SystemClock::shared()).await
}

/// A gateway holds its lock for as long as it lives; a shared one is tried, so that two who look at once do
/// not take each other for it.
fn is_gateway_running(home: &HomeFolder) -> bool {
    // Opened to read and never made: a look must not leave a file in a home in which no gateway
    // ever ran.
    let lock = File::open(home.state().join("gateway.lock"));
    lock.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

pub(super) async fn open_store(place: StorePlace, clock: SharedClock) -> Result<Store, AppFailure> {
    let opened = match &place {
        StorePlace::File(path) => Store::open(path, clock).await,
        StorePlace::Postgres(address) => {
            Store::open_postgres(address, GatewayId::sole(), clock).await
        }
    };
    opened.map_err(|error| AppFailure::caused(&error, error.remedy()))
}
