//! What was counted, as text.
//!
//! The registry writes OpenMetrics. Whoever does not ask for that gets the older text of Prometheus, in which a
//! counter has its suffix in the lines that describe it too, and nothing says that the text has ended.

pub(super) const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
pub(super) const PLAIN_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The same figures in the text format of Prometheus.
pub(super) fn plain_text(openmetrics: &str) -> String {
    let mut text = String::with_capacity(openmetrics.len());
    // What describes a metric comes before what kind it is.
    let mut described = None;
    for line in openmetrics.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            described = help.split_once(' ');
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap_or((kind, "untyped"));
            let (suffix, kind) = match kind {
                "counter" => ("_total", "counter"),
                "unknown" => ("", "untyped"),
                "gauge" | "histogram" => ("", kind),
                _ => ("", "untyped"),
            };
            if let Some((_, help)) = described.take() {
                text.extend(["# HELP ", name, suffix, " ", help, "\n"]);
            }
            text.extend(["# TYPE ", name, suffix, " ", kind, "\n"]);
        } else if !line.starts_with("# UNIT ") && line != "# EOF" {
            text.extend([line, "\n"]);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_described_under_the_name_that_they_have() {
        let written = "# HELP turns Turns that ended.\n# TYPE turns counter\n\
                       turns_total{outcome=\"answered\"} 3\n# HELP turn_seconds Time.\n\
                       # TYPE turn_seconds histogram\n# UNIT turn_seconds seconds\n\
                       turn_seconds_sum 0.5\n# EOF\n";
        assert_eq!(
            plain_text(written),
            "# HELP turns_total Turns that ended.\n# TYPE turns_total counter\n\
             turns_total{outcome=\"answered\"} 3\n# HELP turn_seconds Time.\n\
             # TYPE turn_seconds histogram\nturn_seconds_sum 0.5\n"
        );
    }
}
