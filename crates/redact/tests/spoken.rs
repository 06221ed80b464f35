//! What people say to a model, and what tools answer it.

use serde_json::json;

use crate::knowing;

const VALUE: &str = "correct-horse-battery";

#[test]
fn a_known_value_is_taken_out_of_what_somebody_says_and_a_shape_is_not() {
    let shape = "my key is ghp_0123456789abcdefghijABCDEFGHIJ012345, PASSWORD=hunter2-hunter2";
    let redactor = knowing(&[VALUE]);
    assert!(redactor.redact(shape).as_str().contains("[redacted]"));
    let spoken = redactor.redact_spoken(format!("{shape} and {VALUE}"));
    assert_eq!(
        spoken.into_inner().into_string(),
        format!("{shape} and [redacted]")
    );
}

#[test]
fn every_text_of_an_answer_is_redacted_names_included() {
    let redactor = knowing(&[VALUE]);
    let answer = json!({"output": format!("it is {VALUE}"), "code": 0, "deep": [{VALUE: VALUE}]});
    assert_eq!(
        redactor.redact_json(answer).to_text().as_str(),
        r#"{"code":0,"deep":[{"[redacted]":"[redacted]"}],"output":"it is [redacted]"}"#
    );
}
