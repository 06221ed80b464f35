//! A configuration in, a gateway out.
//!
//! This is the one place that knows every part: which backends, platforms and model dialects exist, and
//! which settings each of them gets. It prints nothing and picks no exit code; whoever calls it does. The
//! binary is one caller, a test that holds a gateway in its hands is the other.

#![forbid(unsafe_code)]

mod access;
mod agents;
mod approvals;
mod audit_record;
mod backends;
mod bounds;
mod dashboard;
mod dashboard_front;
mod daytona;
mod description;
mod docker;
mod egress;
mod facts;
mod failure;
mod gateway;
mod home_channels;
mod installation;
mod installed_agents;
mod keyboard;
mod kit;
#[cfg(feature = "kubernetes")]
mod kubernetes;
mod mcp_servers;
mod memory;
mod modal;
mod model;
mod opened_store;
mod platforms;
mod process_metrics;
mod redactor;
mod refusals;
mod sandbox_plan;
mod schedules;
mod serving;
mod shared_work;
mod singularity;
mod ssh;
mod store_place;
mod surroundings;
mod telemetry;
mod terminal;
mod terminal_opener;
mod toolsets;
mod web;

pub use access::{named_on, names_operators, pairing};
pub use agents::{AgentStanding, agent_standings};
pub use approvals::approvals;
pub use audit_record::{audit, audit_places};
pub use backends::{
    BackendCaller, ShowProgress, all_backends, backend, backend_to_create, begin_native,
};
pub use bounds::{SandboxBounds, machine_memory};
pub use dashboard_front::dashboard_front;
pub use description::{boundary, description};
pub use egress::{gate, gate_for, journal, rule_book, rules_text};
pub use failure::AppFailure;
pub use gateway::gateway;
#[cfg(feature = "kubernetes")]
pub use hermetic_kubernetes::{ManifestOptions, manifest as kubernetes_manifest};
pub use hermetic_native::PendingHeadStart;
pub use installation::{installation, known_installation};
pub use installed_agents::{agent_folder, agent_programs};
pub use keyboard::{KeyboardChat, KeyboardMemories, KeyboardPerson, keyboard_chat};
pub use kit::{clients_kit, servers_kit};
pub use mcp_servers::login_file;
pub use memory::{memories, owner_rule, skills};
pub use model::{
    CatalogEntry, CheckFailure, CheckedModel, ConfiguredModel, ModelCatalog, ModelRole,
    configured_models, known_providers,
};
pub use opened_store::store;
#[cfg(feature = "matrix")]
pub use platforms::{MatrixDevice, matrix_devices};
pub use platforms::{PlatformSetup, SetupValue, check_accounts, setups, speaks};
pub use redactor::redactor;
pub use refusals::{notices, refusals};
pub use sandbox_plan::{
    disk_bounds, is_closed, mounts, network, passing, plan, sandboxes, system, this_folder,
};
pub use schedules::schedules;
pub use serving::sharing_gateways;
pub use shared_work::refuse_beside_shared_work;
pub use store_place::StorePlace;
pub use surroundings::Surroundings;
pub use terminal::{context, policy};
