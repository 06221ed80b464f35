//! The modes and models that an agent offers for a session.

use serde_json::{Value, json};

use crate::bounds::{LONGEST_WORDS, MOST_CHOICES};
use crate::update::words;

/// What a session can be set to, by the agent's word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionOffers {
    pub modes: OfferedChoices,
    pub models: OfferedChoices,
}

/// The modes, or the models.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfferedChoices {
    /// What was set when the session was opened, or since.
    pub current: Option<String>,
    pub choices: Vec<OfferedChoice>,
    /// The option that holds it, with agents that have no method of its own for it.
    option: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedChoice {
    pub id: String,
    /// What the agent calls it.
    pub name: String,
}

/// Where the answer to `session/new` holds the choices, and how one is set.
struct ChoiceFields {
    group: &'static str,
    list: &'static str,
    id: &'static str,
    current: &'static str,
    category: &'static str,
    method: &'static str,
}

const MODES: ChoiceFields = ChoiceFields {
    group: "modes",
    list: "availableModes",
    id: "id",
    current: "currentModeId",
    category: "mode",
    method: "session/set_mode",
};

const MODELS: ChoiceFields = ChoiceFields {
    group: "models",
    list: "availableModels",
    id: "modelId",
    current: "currentModelId",
    category: "model",
    method: "session/set_model",
};

impl SessionOffers {
    /// From the answer to `session/new` or `session/load`.
    pub(crate) fn read(opened: &Value) -> Self {
        Self {
            modes: OfferedChoices::read(opened, &MODES),
            models: OfferedChoices::read(opened, &MODELS),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.modes.choices.is_empty() && self.models.choices.is_empty()
    }

    /// The call that sets a mode.
    pub(crate) fn set_mode(&self, session: &str, mode: &str) -> (&'static str, Value) {
        let params = json!({"sessionId": session, "modeId": mode});
        self.modes.setting(session, mode, (MODES.method, params))
    }

    /// The call that sets a model.
    pub(crate) fn set_model(&self, session: &str, model: &str) -> (&'static str, Value) {
        let params = json!({"sessionId": session, "modelId": model});
        self.models.setting(session, model, (MODELS.method, params))
    }
}

impl OfferedChoices {
    fn read(opened: &Value, fields: &ChoiceFields) -> Self {
        let group = opened.get(fields.group).unwrap_or(&Value::Null);
        let choices: Vec<_> = many(group, fields.list)
            .filter_map(|one| OfferedChoice::read(one, fields.id))
            .take(MOST_CHOICES)
            .collect();
        if !choices.is_empty() {
            return Self {
                current: words(group, fields.current),
                choices,
                option: None,
            };
        }
        // Newer agents have modes and models among their options.
        let mut options = many(opened, "configOptions");
        let option = options.find(|one| words(one, "category").as_deref() == Some(fields.category));
        let Some(option) = option else {
            return Self::default();
        };
        // Their values stand in a list, or in groups of such.
        let values = many(option, "options").flat_map(|one| {
            let grouped: Vec<_> = many(one, "options").collect();
            match grouped.is_empty() {
                true => vec![one],
                false => grouped,
            }
        });
        Self {
            current: words(option, "currentValue"),
            choices: values
                .filter_map(|one| OfferedChoice::read(one, "value"))
                .take(MOST_CHOICES)
                .collect(),
            option: words(option, "id"),
        }
    }

    /// The choice that somebody means: by its id, or by what the agent calls it.
    pub fn find(&self, wanted: &str) -> Option<&OfferedChoice> {
        let exact = self.choices.iter().find(|one| one.id == wanted);
        exact.or_else(|| {
            let is_meant = |text: &str| text.eq_ignore_ascii_case(wanted);
            let mut choices = self.choices.iter();
            choices.find(|one| is_meant(&one.id) || is_meant(&one.name))
        })
    }

    fn setting(
        &self,
        session: &str,
        value: &str,
        by_method: (&'static str, Value),
    ) -> (&'static str, Value) {
        match &self.option {
            Some(option) => (
                "session/set_config_option",
                json!({"sessionId": session, "configId": option, "value": value}),
            ),
            None => by_method,
        }
    }
}

impl OfferedChoice {
    /// `None` for an id that is too long: cut, it would be another.
    fn read(choice: &Value, id: &str) -> Option<Self> {
        let id = choice.get(id).and_then(Value::as_str)?;
        let is_plain = !id.is_empty() && !id.chars().any(char::is_control);
        (is_plain && id.len() <= LONGEST_WORDS).then(|| Self {
            id: id.to_owned(),
            name: words(choice, "name").unwrap_or_default(),
        })
    }
}

fn many<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    let list = value.get(name).and_then(Value::as_array);
    list.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_read_from_either_place_and_beyond_a_sixteenth() {
        let models: Vec<_> = (0..40)
            .map(|n| json!({"modelId": format!("m{n}"), "name": format!("Model {n}")}))
            .collect();
        let offers = SessionOffers::read(&json!({
            "models": {"currentModelId": "m3", "availableModels": models},
            "configOptions": [
                {"id": "other", "category": "thought_level"},
                {"id": "perm", "category": "mode", "currentValue": "ask", "options": [
                    {"group": "g", "options": [{"value": "ask", "name": "Ask"}]},
                    {"value": "free", "name": "Free hand"},
                ]},
            ],
        }));
        assert_eq!(offers.models.current.as_deref(), Some("m3"));
        assert_eq!(offers.models.find("model 39").unwrap().id, "m39");
        assert_eq!(offers.models.find("m40"), None);
        let (method, params) = offers.set_model("s", "m39");
        assert_eq!(
            (method, &params["modelId"]),
            ("session/set_model", &json!("m39"))
        );
        assert_eq!(offers.modes.find("FREE HAND").unwrap().id, "free");
        let (method, params) = offers.set_mode("s", "free");
        assert_eq!(
            (method, &params["configId"]),
            ("session/set_config_option", &json!("perm"))
        );
    }

    #[test]
    fn a_flood_of_choices_is_cut_and_odd_ones_are_none() {
        let many: Vec<_> = (0..5000).map(|n| json!({"id": n.to_string()})).collect();
        let offers = SessionOffers::read(&json!({"modes": {"availableModes": many}}));
        assert_eq!(offers.modes.choices.len(), MOST_CHOICES);
        for odd in [
            json!(null),
            json!({"id": 7}),
            json!({"id": ""}),
            json!({"id": "a\nb"}),
            json!({"id": "x".repeat(LONGEST_WORDS + 1)}),
        ] {
            let offers = SessionOffers::read(&json!({"modes": {"availableModes": [odd]}}));
            assert_eq!(offers, SessionOffers::default());
        }
    }
}
