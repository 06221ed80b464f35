//! The methods, as signal-cli's manual has them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::world::{Failure, World};
use super::{NUMBER, UUID};

/// What becomes of one message of JSON-RPC.
pub(super) enum Reply {
    Answer(Value),
    /// There was nothing to answer.
    Nothing,
    Status(u16),
    /// The connection breaks.
    Break,
}

struct Refusal {
    code: i64,
    message: String,
    data: Value,
}

const USER: i64 = -1;
const IO: i64 = -3;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const INVALID_REQUEST: i64 = -32600;

/// A single request, or a batch of them.
pub(super) fn handle(world: &World, message: &Value) -> Reply {
    let Some(batch) = message.as_array() else {
        return single(world, message);
    };
    if batch.is_empty() {
        return Reply::Answer(error(
            &Value::Null,
            refuse(INVALID_REQUEST, "invalid request"),
        ));
    }
    let answers = batch
        .iter()
        .filter_map(|message| match single(world, message) {
            Reply::Answer(answer) => Some(answer),
            _ => None,
        });
    Reply::Answer(answers.collect())
}

pub(super) fn parse_error() -> Value {
    error(&Value::Null, refuse(-32700, "Unrecognized token"))
}

fn single(world: &World, message: &Value) -> Reply {
    let id = &message["id"];
    let Some(method) = message["method"].as_str() else {
        return Reply::Answer(error(id, refuse(INVALID_REQUEST, "invalid request")));
    };
    let failure = world.begin(method);
    match failure {
        Some(Failure::Refuse {
            code,
            message,
            data,
        }) => {
            let refusal = Refusal {
                data,
                ..refuse(code, message)
            };
            return Reply::Answer(error(id, refusal));
        }
        Some(Failure::Status(status)) => return Reply::Status(status),
        Some(Failure::Drop) => return Reply::Break,
        Some(Failure::DropAfter) | None => {}
    }
    let done = call(world, method, &message["params"]);
    match (done, failure) {
        (_, Some(Failure::DropAfter)) => Reply::Break,
        _ if id.is_null() => Reply::Nothing,
        (Ok(result), _) => Reply::Answer(json!({ "jsonrpc": "2.0", "result": result, "id": id })),
        (Err(refusal), _) => Reply::Answer(error(id, refusal)),
    }
}

fn call(world: &World, method: &str, params: &Value) -> Result<Value, Refusal> {
    let account = params["account"].as_str();
    if account.is_some_and(|account| account != NUMBER) || (account.is_some() && !world.is_linked())
    {
        return Err(refuse(INVALID_PARAMS, "Specified account does not exist"));
    }
    if account.is_none() && !matches!(method, "listAccounts" | "version") && !world.is_linked() {
        return Err(refuse(
            INVALID_PARAMS,
            "Method requires valid account parameter",
        ));
    }
    match method {
        "version" => Ok(json!({ "version": "0.14.6" })),
        "listAccounts" => Ok(json!([{ "number": NUMBER }])),
        "listDevices" | "send" if world.is_orphaned() => Err(refuse(
            IO,
            "Failed to ask the service: [403] Authorization failed! (AuthorizationFailedException)",
        )),
        "listDevices" => Ok(json!([{ "id": 1, "name": null }, { "id": 2, "name": "hermetic" }])),
        "receive" if world.is_receiving() => Err(refuse(
            USER,
            "Receive command cannot be used if messages are already being received.",
        )),
        "receive" => Ok(json!([])),
        "getUserStatus" => Ok(user_status(world, params)),
        "getAttachment" => attachment(world, params),
        "send" => send(world, params),
        "sendTyping" => {
            target(params)?;
            Ok(noted(world, method, params))
        }
        "sendReceipt" => {
            if params["recipient"].as_str().is_none() || !params["targetTimestamp"].is_array() {
                return Err(refuse(USER, "No recipients given"));
            }
            Ok(noted(world, method, params))
        }
        _ => Err(refuse(METHOD_NOT_FOUND, "Method not implemented")),
    }
}

fn send(world: &World, params: &Value) -> Result<Value, Refusal> {
    target(params)?;
    let text = params["message"].as_str().unwrap_or_default();
    let attachments = params["attachments"].as_array();
    if text.is_empty() && attachments.is_none_or(Vec::is_empty) {
        return Err(refuse(USER, "Sending empty message is not allowed"));
    }
    for style in params["textStyle"].as_array().into_iter().flatten() {
        check_style(style.as_str().unwrap_or_default(), text)?;
    }
    for uri in attachments.into_iter().flatten() {
        let known = uri
            .as_str()
            .is_some_and(|uri| uri.starts_with("data:") && uri.contains(";base64,"));
        if !known {
            return Err(refuse(
                -32603,
                "Failed to send message: no such file (AttachmentInvalidException)",
            ));
        }
    }
    if params["quoteTimestamp"].is_u64() && params["quoteAuthor"].as_str().is_none() {
        return Err(refuse(USER, "Quote author parameter is missing"));
    }
    Ok(noted(world, "send", params))
}

/// A range within the text, in UTF-16 units.
fn check_style(style: &str, text: &str) -> Result<(), Refusal> {
    let mut parts = style.splitn(3, ':');
    let mut number = || parts.next().and_then(|part| part.parse::<usize>().ok());
    let (start, length) = (number(), number());
    let known = ["BOLD", "ITALIC", "SPOILER", "STRIKETHROUGH", "MONOSPACE"];
    let is_known = parts.next().is_some_and(|name| known.contains(&name));
    let end = start.zip(length).map(|(start, length)| start + length);
    let fits = end.is_some_and(|end| end <= text.encode_utf16().count());
    match is_known && fits {
        true => Ok(()),
        false => Err(refuse(USER, &format!("Invalid textStyle syntax ({style})"))),
    }
}

fn target(params: &Value) -> Result<(), Refusal> {
    let to_self = params["noteToSelf"] == true;
    let to_people = params["recipient"]
        .as_array()
        .is_some_and(|people| !people.is_empty());
    let group = params["groupId"].as_str();
    if let Some(group) = group
        && STANDARD.decode(group).is_err()
    {
        return Err(refuse(
            USER,
            "Invalid group id: Failed to decode groupId (must be base64)",
        ));
    }
    match to_self || to_people || group.is_some() {
        true => Ok(()),
        false => Err(refuse(USER, "No recipients given")),
    }
}

fn noted(world: &World, method: &str, params: &Value) -> Value {
    let timestamp = world.next_timestamp();
    world.note(method, params, timestamp);
    let recipient = params["recipient"][0].clone();
    let results = json!([{ "recipientAddress": { "uuid": recipient }, "type": "SUCCESS" }]);
    json!({ "timestamp": timestamp, "results": results })
}

fn user_status(world: &World, params: &Value) -> Value {
    let asked = params["recipient"].as_array().into_iter().flatten();
    asked
        .filter_map(Value::as_str)
        .map(|number| {
            let known = (number == NUMBER).then(|| UUID.to_owned());
            let uuid = known.or_else(|| world.uuid(number));
            let registered = uuid.is_some();
            json!({ "recipient": number, "number": number, "uuid": uuid, "isRegistered": registered })
        })
        .collect()
}

fn attachment(world: &World, params: &Value) -> Result<Value, Refusal> {
    let id = params["id"].as_str().unwrap_or_default();
    let file = world.file(id);
    let file =
        file.ok_or_else(|| refuse(USER, &format!("Could not find attachment with ID: {id}")))?;
    Ok(json!({ "data": STANDARD.encode(file) }))
}

fn refuse(code: i64, message: &str) -> Refusal {
    Refusal {
        code,
        message: message.to_owned(),
        data: Value::Null,
    }
}

fn error(id: &Value, refusal: Refusal) -> Value {
    let Refusal {
        code,
        message,
        data,
    } = refusal;
    json!({ "jsonrpc": "2.0", "error": { "code": code, "message": message, "data": data }, "id": id })
}
