//! What the operating system says of this process, looked at when somebody asks.
//!
//! Under the names that every program has which Prometheus looks at, so without ours before them.

use std::fs;
use std::os::unix::fs::MetadataExt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};

/// Shows memory, descriptors, processor time and the start of this process.
#[derive(Debug)]
pub(super) struct ProcessMetrics {
    ticks: f64,
    page_bytes: u64,
    /// Seconds since 1970 at which the machine started.
    booted: Option<f64>,
}

/// What `/proc/self/stat` says, as far as it is shown.
#[derive(Clone, Copy, Debug, PartialEq)]
struct OwnProcessStat {
    processor_ticks: f64,
    threads: u64,
    /// Since the machine started.
    start_ticks: f64,
    virtual_bytes: u64,
    resident_pages: u64,
}

impl ProcessMetrics {
    pub(super) fn register(registry: &mut Registry) {
        let booted = fs::read_to_string("/proc/stat").ok();
        registry.register_collector(Box::new(Self {
            ticks: clock_ticks_per_second() as f64,
            page_bytes: page_size() as u64,
            booted: booted.as_deref().and_then(boot_time),
        }));
    }
}

impl Collector for ProcessMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let mut gauge = |name: &str, help: &str, value: u64| {
            let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
            gauge.encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)
        };
        if let Some(open) = open_descriptors() {
            gauge("process_open_fds", "Descriptors that are open.", open)?;
        }
        if let Some(most) = getrlimit(Resource::Nofile).current {
            gauge("process_max_fds", "Descriptors that may be open.", most)?;
        }
        let stat = fs::read_to_string("/proc/self/stat").ok();
        let Some(stat) = stat.as_deref().and_then(OwnProcessStat::parse) else {
            return Ok(());
        };
        gauge("process_threads", "Threads.", stat.threads)?;
        gauge(
            "process_virtual_memory_bytes",
            "Memory that is mapped.",
            stat.virtual_bytes,
        )?;
        gauge(
            "process_resident_memory_bytes",
            "Memory that is held.",
            stat.resident_pages.saturating_mul(self.page_bytes),
        )?;
        let seconds = ConstCounter::new(stat.processor_ticks / self.ticks);
        let kind = seconds.metric_type();
        let help = "Processor time, in seconds.";
        seconds.encode(encoder.encode_descriptor("process_cpu_seconds", help, None, kind)?)?;
        if let Some(booted) = self.booted {
            let started = ConstGauge::new(booted + stat.start_ticks / self.ticks);
            let help = "When the process started, in seconds since 1970.";
            let name = "process_start_time_seconds";
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            started.encode(metric)?;
        }
        Ok(())
    }
}

impl OwnProcessStat {
    /// The name in brackets may hold anything, brackets too; fields are counted after its end.
    fn parse(text: &str) -> Option<Self> {
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let number = |place: usize| fields.get(place)?.parse::<u64>().ok();
        let ticks = |place: usize| fields.get(place)?.parse::<f64>().ok();
        Some(Self {
            processor_ticks: ticks(11)? + ticks(12)?,
            threads: number(17)?,
            start_ticks: ticks(19)?,
            virtual_bytes: number(20)?,
            resident_pages: number(21)?,
        })
    }
}

/// Kernels since 6.2 say it without a walk through the folder.
fn open_descriptors() -> Option<u64> {
    let folder = "/proc/self/fd";
    match fs::metadata(folder).ok()?.size() {
        0 => Some(fs::read_dir(folder).ok()?.count() as u64),
        size => Some(size),
    }
}

fn boot_time(stat: &str) -> Option<f64> {
    let line = stat.lines().find_map(|line| line.strip_prefix("btime "));
    line?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    fn a_name_with_brackets_moves_no_field() {
        let text = "7 (a) (b) S 1 7 7 0 -1 4194560 1 0 0 0 250 50 0 0 20 0 9 0 12345 4096 17 1844";
        let stat = OwnProcessStat::parse(text).unwrap();
        assert_eq!(stat.processor_ticks, 300.0);
        assert_eq!((stat.threads, stat.start_ticks), (9, 12345.0));
        assert_eq!((stat.virtual_bytes, stat.resident_pages), (4096, 17));
        assert_eq!(OwnProcessStat::parse("7 (x"), None);
        assert_eq!(OwnProcessStat::parse("7 (x) S 1"), None);
        assert_eq!(
            boot_time("cpu 1\nbtime 1700000000\n"),
            Some(1_700_000_000.0)
        );
    }

    #[test]
    fn this_process_has_memory_and_descriptors() {
        let mut registry = Registry::default();
        ProcessMetrics::register(&mut registry);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        for name in [
            "process_open_fds",
            "process_max_fds",
            "process_threads",
            "process_resident_memory_bytes",
            "process_cpu_seconds_total",
            "process_start_time_seconds",
        ] {
            let line = text.lines().find(|line| line.starts_with(name));
            let value = line.and_then(|line| line.rsplit_once(' '));
            let value: f64 = value
                .unwrap_or_else(|| panic!("{name} in {text}"))
                .1
                .parse()
                .unwrap();
            assert!(value > 0.0 || name.contains("cpu"), "{name} is {value}");
        }
    }
}
