use super::*;

fn refused(code: i64, message: &str, results: Value) -> SendFailure {
    let mut data = json!({ "response": { "timestamp": 1 } });
    data["response"]["results"] = results;
    let error = json!({ "code": code, "message": message, "data": data });
    let (_, said) = answer(json!({ "jsonrpc": "2.0", "id": 1, "error": error }));
    said.unwrap_err().into()
}

#[test]
fn each_refusal_says_whether_it_may_be_sent_again() {
    let failed = |kind: &str| json!([{ "type": kind }]);
    assert!(
        matches!(refused(-1, "Failed to send message", failed("UNREGISTERED_FAILURE")),
        SendFailure::Refused { description } if description.contains("no signal account"))
    );
    assert!(matches!(
        refused(-1, "Invalid group id", json!([])),
        SendFailure::Refused { .. }
    ));
    assert!(
        matches!(refused(-4, "untrusted", failed("IDENTITY_FAILURE")),
        SendFailure::Refused { description } if description.contains("safety number"))
    );
    assert!(matches!(
        refused(-6, "captcha rejected", json!([])),
        SendFailure::Refused { .. }
    ));
    assert!(
        matches!(refused(-32602, "Specified account does not exist", json!([])),
        SendFailure::NotSent(error) if error.to_string().contains("link it again"))
    );
    for (code, results) in [
        (-3, json!([])),
        (-32603, json!([])),
        (-1, failed("NETWORK_FAILURE")),
    ] {
        assert!(
            matches!(refused(code, "IO", results), SendFailure::Uncertain(_)),
            "{code}"
        );
    }
}

#[test]
fn a_limit_says_how_long_and_no_longer_than_an_hour() {
    let limited = |fields: Value| {
        let mut result = json!({ "type": "RATE_LIMIT_FAILURE" });
        result
            .as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        match refused(
            -5,
            "Failed to send message due to rate limiting",
            json!([result]),
        ) {
            SendFailure::Throttled { retry_after } => retry_after.as_secs(),
            failure => panic!("{failure:?}"),
        }
    };
    assert_eq!(limited(json!({ "retryAfterSeconds": 7 })), 7);
    assert_eq!(limited(json!({})), 60);
    assert_eq!(
        limited(json!({ "retryAfterSeconds": 86_400, "token": "abc" })),
        3600
    );
}

#[test]
fn an_answer_is_one_or_is_garbled() {
    let (id, said) = answer(json!({ "jsonrpc": "2.0", "id": 7, "result": { "timestamp": 9 } }));
    assert_eq!((id, said.unwrap()), (Some(7), json!({ "timestamp": 9 })));
    for other in [
        json!({}),
        json!([]),
        json!(null),
        json!({ "id": 7 }),
        json!("x"),
    ] {
        assert!(matches!(answer(other), (_, Err(SignalCallError::Garbled))));
    }
    let wild = json!({ "error": { "code": "x", "message": 5, "data": [] }, "id": {} });
    assert!(matches!(
        answer(wild),
        (None, Err(SignalCallError::Refused(_)))
    ));
}
