//! Several gateways, as processes, on one real PostgreSQL: one serves, the others stand by.

mod chaos;
mod cluster;
mod figures;
mod standby;
