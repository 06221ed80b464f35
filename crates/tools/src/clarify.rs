//! `clarify`: a question of the agent to the person it works for.

use serde_json::{Map, Value, json};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::toolbox::RawAnswer;
use crate::{ToolDescription, ToolWorkplace};

pub(crate) const NAME: &str = "clarify";

/// A question with the answers that are offered; a person may always give another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClarifyQuestion {
    pub text: String,
    /// Empty for one that is answered in words.
    pub choices: Vec<String>,
}

/// Why no answer came, in words for the model.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ClarifyError {
    #[error("nobody can be asked here; decide by yourself, and say what you took for granted")]
    NobodyToAsk,
    #[error(
        "the person did not answer in time; decide by yourself, and say what you took for granted"
    )]
    NoAnswer,
    #[error("the question could not be shown to the person; decide by yourself")]
    NotShown,
    #[error("interrupted before an answer came")]
    Interrupted,
}

const MOST_CHOICES: usize = 4;
const QUESTION_CHARS: usize = 2000;
const CHOICE_CHARS: usize = 200;

pub(crate) fn description() -> ToolDescription {
    ToolDescription {
        name: NAME.into(),
        description: "Asks the person a question and waits for the answer. With choices, up to 4, each one an \
             entry of its own and not part of the question; the person picks one or writes another answer. \
             Without choices the person answers in words. For decisions that are the person's and that matter. \
             Not for permission to run a command: that is asked for by itself."
            .to_owned(),
        schema: json!({
            "type": "object",
            "properties": {
                "question": {"type": "string", "description": "the question alone, without the choices"},
                "choices": {
                    "type": "array", "items": {"type": "string"}, "maxItems": MOST_CHOICES,
                    "description": "answers to choose from; leave it out for an open question",
                },
            },
            "required": ["question"],
        }),
    }
}

pub(crate) async fn call(
    arguments: &Map<String, Value>,
    workplace: &dyn ToolWorkplace,
    stop: &CancellationToken,
) -> RawAnswer {
    let failed = |error: String| RawAnswer {
        json: json!({"error": error}),
        failed: true,
    };
    let question = match read(arguments) {
        Ok(question) => question,
        Err(wrong) => return failed(wrong),
    };
    match workplace.clarify(question.clone(), stop).await {
        Ok(answer) => {
            let offered = (!question.choices.is_empty()).then_some(question.choices);
            RawAnswer {
                json: json!({
                    "question": question.text,
                    "choices_offered": offered,
                    "user_response": answer,
                }),
                failed: false,
            }
        }
        Err(error) => failed(error.to_string()),
    }
}

fn read(arguments: &Map<String, Value>) -> Result<ClarifyQuestion, String> {
    let text = arguments.get("question").and_then(Value::as_str);
    let text = text.map(str::trim).filter(|text| !text.is_empty());
    let text = text.ok_or("question must be a text")?;
    let choices = match arguments.get("choices") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(list)) => list.iter().filter_map(choice).take(MOST_CHOICES).collect(),
        Some(_) => return Err("choices must be a list of texts".to_owned()),
    };
    Ok(ClarifyQuestion {
        text: text.chars().take(QUESTION_CHARS).collect(),
        choices,
    })
}

/// Some models send objects; their words are in one of these.
fn choice(value: &Value) -> Option<String> {
    let named = ["label", "description", "text", "title"];
    let text = match value {
        Value::String(text) => text.as_str(),
        Value::Object(fields) => named.iter().find_map(|name| fields.get(*name)?.as_str())?,
        _ => return None,
    };
    // A button is one line.
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line: String = line.chars().take(CHOICE_CHARS).collect();
    (!line.is_empty()).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_read_in_every_form_and_bounded() {
        let read = |value: Value| super::read(value.as_object().unwrap());
        let question = read(json!({
            "question": " Which? ",
            "choices": ["a\nb", {"label": "c"}, 7, "", {"value": "x"}, "d", "e", "f"],
        }));
        let question = question.unwrap();
        assert_eq!(question.text, "Which?");
        assert_eq!(question.choices, ["a b", "c", "d", "e"]);
        assert!(read(json!({"question": "  "})).is_err());
        assert!(read(json!({"question": "x", "choices": "a"})).is_err());
        let long =
            read(json!({"question": "q".repeat(9999), "choices": ["c".repeat(999)]})).unwrap();
        assert_eq!((long.text.len(), long.choices[0].len()), (2000, 200));
    }
}
