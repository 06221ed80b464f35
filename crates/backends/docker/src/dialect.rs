//! Podman's words for what Docker says in its own.
//!
//! It has more states than the API it speaks knows, and an answer with one of them is otherwise not
//! understood at all.

use bollard::errors::Error;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Its words for the state of a container, and ours.
const STATES: [(&str, &str); 4] = [
    // Ended, and not tidied up yet.
    ("stopped", "exited"),
    ("configured", "created"),
    // Attached to, and not started.
    ("initialized", "created"),
    ("unknown", "dead"),
];

/// In an inspection a word inside, in a list a word itself.
const PLACES: [&str; 2] = ["/State/Status", "/State"];

/// Whether it says that there is no such container. One that went while it was looked at is an
/// error of Podman's own.
pub(crate) fn is_gone(error: &Error) -> bool {
    says(error, 404, "no such container")
}

/// Whether it says that the name is another's.
pub(crate) fn is_taken(error: &Error) -> bool {
    says(error, 409, "already in use")
}

/// Whether it says that this cannot be done to it now, because it ends or is removed already.
pub(crate) fn is_going(error: &Error) -> bool {
    says(error, 409, "container state improper")
}

fn says(error: &Error, code: u16, words: &str) -> bool {
    match error {
        Error::DockerResponseServerError {
            status_code,
            message,
        } => *status_code == code || (*status_code == 500 && message.contains(words)),
        _ => false,
    }
}

/// Reads again what was not understood.
pub(crate) fn understand<T: DeserializeOwned>(answer: Result<T, Error>) -> Result<T, Error> {
    match answer {
        Err(Error::JsonDataError { ref contents, .. }) => reread(contents).map_or(answer, Ok),
        answer => answer,
    }
}

fn reread<T: DeserializeOwned>(text: &str) -> Option<T> {
    let mut said: Value = serde_json::from_str(text).ok()?;
    match &mut said {
        Value::Array(all) => all.iter_mut().for_each(translate),
        one => translate(one),
    }
    serde_json::from_value(said).ok()
}

fn translate(container: &mut Value) {
    for place in PLACES {
        let Some(word) = container.pointer_mut(place) else {
            continue;
        };
        if let Some((_, ours)) = STATES.iter().find(|(theirs, _)| word == theirs) {
            *word = Value::from(*ours);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bollard::models::{ContainerInspectResponse, ContainerSummary};

    fn not_understood<T>(text: &str) -> Result<T, Error> {
        Err(Error::JsonDataError {
            message: "unknown variant".to_owned(),
            contents: text.to_owned(),
            column: 0,
        })
    }

    #[test]
    fn a_state_of_podmans_is_understood() {
        let list = r#"[{"Id":"1","State":"stopped"},{"Id":"2","State":"running"}]"#;
        let list = understand(not_understood::<Vec<ContainerSummary>>(list)).unwrap();
        let states: Vec<String> = list
            .into_iter()
            .filter_map(|one| one.state.map(|state| state.to_string()))
            .collect();
        assert_eq!(states, ["exited", "running"]);

        let one = r#"{"Id":"1","State":{"Status":"initialized","Pid":7}}"#;
        let one = understand(not_understood::<ContainerInspectResponse>(one)).unwrap();
        let state = one.state.unwrap();
        assert_eq!(state.status.unwrap().to_string(), "created");
        assert_eq!(state.pid, Some(7));
    }

    #[test]
    fn an_error_of_its_own_means_what_dockers_means() {
        let error = |status_code, message: &str| Error::DockerResponseServerError {
            status_code,
            message: message.to_owned(),
        };
        let gone = error(
            500,
            "container 5 does not exist in database: no such container",
        );
        let taken = error(500, "the container name \"x\" is already in use by 5");
        assert!(is_gone(&gone) && is_gone(&error(404, "")) && !is_taken(&gone));
        assert!(is_taken(&taken) && is_taken(&error(409, "")) && !is_gone(&taken));
        assert!(!is_gone(&error(500, "out of memory")));
        let going = error(
            500,
            "it could not be stopped: container state improper: stopped",
        );
        assert!(is_going(&going) && is_going(&error(409, "")) && !is_going(&gone));
    }

    #[test]
    fn what_means_nothing_stays_an_error() {
        for text in ["", "[", r#"{"State":{"Status":"dancing"}}"#] {
            assert!(understand(not_understood::<ContainerInspectResponse>(text)).is_err());
        }
    }
}
