//! How well commands are sealed, in one line and in all its layers.

use hermetic_types::PartHealth;
use maud::{Markup, html};

use super::{GatewayRow, OverviewPage};
use crate::pages::layout::{mark, state_mark, time};
use crate::{SealReport, SealedPlace};

/// What is said first, with the colour that it is said in.
///
/// Green is for what was looked at and found whole. What nobody could look at is not known, and what was known
/// before is not known now.
fn verdict(seal: &SealReport) -> (&'static str, &'static str) {
    let mut places = seal.places.iter();
    if places.any(|place| !place.is_sealed) {
        return ("bad", "Not sealed: some commands run on the host");
    }
    let states = || {
        let layers = seal.places.iter().flat_map(|place| &place.layers);
        layers.map(|layer| layer.state.as_str())
    };
    if states().any(|state| state == "required") {
        let headline =
            "A layer is missing without which nothing may run, so some commands are refused";
        return ("bad", headline);
    }
    let is_known = |place: &SealedPlace| place.is_known && !place.layers.is_empty();
    if seal.places.is_empty() || !seal.places.iter().all(is_known) {
        return ("fair", "How well commands are sealed is not known");
    }
    match states().all(|state| state == "active") {
        true => ("good", "Sealed: every command runs in a sandbox"),
        false => (
            "good",
            "Sealed, and some layers are weaker than they could be",
        ),
    }
}

pub(super) fn seal(page: &OverviewPage) -> Markup {
    let (kind, headline) = verdict(&page.seal);
    html! {
        section #seal data-live class={ "panel seal " (kind) } aria-labelledby="seal-title" {
            h2 #seal-title { (headline) }
            @for warning in &page.seal.warnings {
                p.note.fair { (warning) }
            }
            @for part in &page.condition.parts {
                @if let PartHealth::Degraded { why, since } = &part.health {
                    p.note.bad {
                        strong { (part.name) } " is degraded since " (time(page.now, *since)) ": " (why)
                    }
                }
            }
            dl.facts {
                div { dt { "Gateway" } dd { (page.condition.stage) ", version " (page.condition.version) } }
                @for gateway in &page.gateways {
                    div {
                        dt { "Gateways" }
                        dd {
                            (gateway.name) " · " (gateway_mark(gateway)) ", version " (gateway.version)
                            @if gateway.condition == "silent" {
                                " · not seen for " (gateway.silent_seconds) " s"
                            }
                        }
                    }
                }
                div { dt { "Network" } dd { (page.seal.egress) } }
                @for place in &page.seal.places {
                    div {
                        dt { "Backend " (place.backend) }
                        dd {
                            @if place.platforms.is_empty() { "every platform" }
                            @else { (place.platforms.join(", ")) }
                            " · "
                            @if place.is_sealed && place.is_known { (mark("good", "sealed")) }
                            @else if place.is_sealed { (mark("fair", "a sandbox, not looked at")) }
                            @else { (mark("bad", "the host itself")) }
                        }
                    }
                }
            }
            @for place in &page.seal.places {
                @if !place.layers.is_empty() {
                    details data-key=(place.backend) {
                        summary {
                            (place.layers.iter().filter(|layer| layer.state == "active").count())
                            " of " (place.layers.len()) " layers of " (place.backend) " hold in full"
                        }
                        div.scroll tabindex="0" role="region" aria-label={ "Layers of " (place.backend) } {
                            table {
                                thead { tr { th { "Layer" } th { "State" } th { "How" } } }
                                tbody {
                                    @for layer in &place.layers {
                                        tr data-key=(layer.name) {
                                            th scope="row" { (layer.name) }
                                            td { (state_mark(&layer.state)) }
                                            td {
                                                (layer.detail)
                                                @if let Some(remedy) = &layer.remedy {
                                                    div.dim { (remedy) }
                                                }
                                            }
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn gateway_mark(gateway: &GatewayRow) -> Markup {
    let kind = match gateway.condition {
        "serving" => "good",
        "silent" => "bad",
        _ => "fair",
    };
    mark(kind, gateway.condition)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LayerRow;

    fn place(is_sealed: bool, is_known: bool, states: &[&str]) -> SealedPlace {
        let layers = states.iter().map(|state| LayerRow {
            name: format!("layer {state}"),
            state: (*state).to_owned(),
            detail: String::new(),
            remedy: None,
        });
        SealedPlace {
            backend: "native".to_owned(),
            is_sealed,
            is_known,
            platforms: Vec::new(),
            layers: layers.collect(),
        }
    }

    fn colour(places: impl IntoIterator<Item = SealedPlace>) -> &'static str {
        let seal = SealReport {
            places: places.into_iter().collect(),
            ..SealReport::default()
        };
        verdict(&seal).0
    }

    #[test]
    fn only_what_was_looked_at_and_holds_is_green() {
        let whole = || place(true, true, &["active", "active"]);
        assert_eq!(colour([whole()]), "good");
        assert_eq!(colour([whole(), place(true, true, &["weaker"])]), "good");
        assert_eq!(colour([]), "fair");
        assert_eq!(
            colour([place(true, true, &[])]),
            "fair",
            "nobody told anything"
        );
        assert_eq!(
            colour([place(true, false, &["active"])]),
            "fair",
            "it does not answer"
        );
        assert_eq!(colour([whole(), place(true, false, &[])]), "fair");
        let required = place(true, true, &["active", "required"]);
        assert_eq!(colour([whole(), required]), "bad");
        assert_eq!(colour([whole(), place(false, true, &["active"])]), "bad");
        assert_eq!(colour([place(false, false, &[])]), "bad");
    }
}
