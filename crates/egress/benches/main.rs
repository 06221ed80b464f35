//! What users feel of the proxy: `cargo bench -p hermetic-egress [-- decision|requests|tunnels|bulk|idle]`.
//!
//! Proxy and origin run as processes of their own, everything on loopback, and Squid is measured in the
//! same run where it is installed. Figures go to standard output, one line each.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench prints figures and stops at the first surprise"
)]

mod bulk;
mod decision;
mod idle;
mod load;
mod roles;
mod squid;

use roles::Child;

fn main() {
    roles::raise_file_limit();
    if roles::play() {
        return;
    }
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with('-'))
        .collect();
    let runs = |name: &str| wanted.is_empty() || wanted.iter().any(|w| w == name);
    if runs("decision") {
        decision::run();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    if ["requests", "tunnels", "bulk"].into_iter().any(runs) {
        let origin = Child::start("origin", &[]);
        let proxy = Child::start(
            "proxy",
            &[&format!(
                "tcp://localhost:{} in 127.0.0.0/8,::1",
                origin.port
            )],
        );
        let squid = squid::Squid::start(origin.port);
        let mut ways = vec![("direct", None), ("hermetic", Some(proxy.port))];
        match &squid {
            Some(squid) => ways.push(("squid", Some(squid.port))),
            None => println!("squid: not installed, not measured"),
        }
        for &(name, proxy) in &ways {
            let way = load::Way {
                origin: origin.port,
                proxy,
            };
            if runs("requests") {
                println!(
                    "requests  {name:9} {}",
                    runtime.block_on(load::requests(way))
                );
            }
            if runs("tunnels") {
                println!(
                    "tunnels   {name:9} {}",
                    runtime.block_on(load::tunnels(way))
                );
            }
        }
        if runs("bulk") {
            runtime.block_on(bulk::run(&ways, origin.port));
        }
    }
    if runs("idle") {
        println!("idle      {}", runtime.block_on(idle::run()));
    }
}
