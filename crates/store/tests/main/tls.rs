//! A database that proves who it is, and one that does not.

use std::fs;
use std::net::TcpListener;

use hermetic_store::{OpenError, Store};
use hermetic_types::{GatewayId, SystemClock};

use crate::postgres_server::PostgresServer;

async fn open(address: &str) -> Result<Store, OpenError> {
    let address = address.parse().unwrap();
    Store::open_postgres(&address, GatewayId::sole(), SystemClock::shared()).await
}

#[tokio::test]
async fn a_database_is_used_if_it_is_who_it_is_called_and_else_not() {
    const TEST: &str = "tls::a_database_is_used_if_it_is_who_it_is_called_and_else_not";
    let Some(server) = PostgresServer::private() else {
        eprintln!("SKIP: {TEST}: there is no postgres here");
        return;
    };
    let address = server.new_database().await;
    let database = address.rsplit('/').next().unwrap();
    // Free until the server has it; nobody else is given it meanwhile but by accident.
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let Some(authority) = server.restart_with_tls(port) else {
        eprintln!("SKIP: {TEST}: there is no openssl here");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let trusted = folder.path().join("trusted.pem");
    fs::copy(&authority, &trusted).unwrap();
    let at =
        |host: &str, more: &str| format!("postgres://hermetic@{host}:{port}/{database}?{more}");
    let proven = format!("sslmode=verify-full&sslrootcert={}", trusted.display());
    open(&at("localhost", &proven))
        .await
        .expect("it is who it is called");
    // Its certificate is of a name and not of this address.
    let other_name = open(&at("127.0.0.1", &proven)).await.unwrap_err();
    assert!(
        matches!(other_name, OpenError::Unreachable { .. }),
        "{other_name:?}"
    );
    // By an authority that nobody was told to trust.
    let unknown = open(&at("localhost", "sslmode=verify-full"))
        .await
        .unwrap_err();
    assert!(
        matches!(unknown, OpenError::Unreachable { .. }),
        "{unknown:?}"
    );
    // And what succeeded was TLS: this server takes nothing else.
    let open_text = open(&at("localhost", "sslmode=disable")).await.unwrap_err();
    assert!(
        matches!(open_text, OpenError::Unreachable { .. }),
        "{open_text:?}"
    );
}
