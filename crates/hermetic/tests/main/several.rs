//! Several gateways, as processes, on one real PostgreSQL: they share the work where everything that it needs is
//! reached from each, and where not, one serves and the others stand by.

mod chaos;
mod cluster;
mod figures;
mod rolling;
mod shared;
mod standby;
