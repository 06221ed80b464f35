//! Spans as a collector reads them: the messages of OpenTelemetry's protocol that a trace needs.

use hermetic_gateway::{FinishedSpan, SpanValue};
use prost::{Message, Oneof};

/// One request to `/v1/traces`.
pub(super) fn request(service_name: &str, spans: &[FinishedSpan]) -> Vec<u8> {
    let resource = Resource {
        attributes: vec![
            text("service.name", service_name),
            text("service.version", env!("CARGO_PKG_VERSION")),
        ],
    };
    let scope = InstrumentationScope {
        name: "hermetic".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let request = ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(resource),
            scope_spans: vec![ScopeSpans {
                scope: Some(scope),
                spans: spans.iter().map(written).collect(),
            }],
        }],
    };
    request.encode_to_vec()
}

fn written(span: &FinishedSpan) -> Span {
    let attributes = span.attributes.iter().map(|(key, value)| KeyValue {
        key: (*key).to_owned(),
        value: Some(AnyValue {
            value: Some(match value {
                SpanValue::Text(text) => Value::StringValue(text.clone()),
                SpanValue::Number(number) => Value::IntValue(*number),
            }),
        }),
    });
    Span {
        trace_id: span.trace.to_vec(),
        span_id: span.id.to_vec(),
        parent_span_id: span.parent.map(|id| id.to_vec()).unwrap_or_default(),
        name: span.name.to_owned(),
        kind: INTERNAL,
        start_time_unix_nano: span.began,
        end_time_unix_nano: span.ended,
        attributes: attributes.collect(),
        status: Some(Status {
            code: if span.failed { FAILED } else { UNSET },
        }),
    }
}

fn text(key: &str, text: &str) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue {
            value: Some(Value::StringValue(text.to_owned())),
        }),
    }
}

/// A span of our own doing, neither a request nor its answer.
const INTERNAL: i32 = 1;
const UNSET: i32 = 0;
const FAILED: i32 = 2;

#[derive(Clone, PartialEq, Message)]
struct ExportTraceServiceRequest {
    #[prost(message, repeated, tag = "1")]
    resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    scope: Option<InstrumentationScope>,
    #[prost(message, repeated, tag = "2")]
    spans: Vec<Span>,
}

#[derive(Clone, PartialEq, Message)]
struct InstrumentationScope {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
}

#[derive(Clone, PartialEq, Message)]
struct Span {
    #[prost(bytes = "vec", tag = "1")]
    trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    span_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    name: String,
    #[prost(int32, tag = "6")]
    kind: i32,
    #[prost(fixed64, tag = "7")]
    start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    attributes: Vec<KeyValue>,
    #[prost(message, optional, tag = "15")]
    status: Option<Status>,
}

#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(int32, tag = "3")]
    code: i32,
}

#[derive(Clone, PartialEq, Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(oneof = "Value", tags = "1, 3")]
    value: Option<Value>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Value {
    #[prost(string, tag = "1")]
    StringValue(String),
    #[prost(int64, tag = "3")]
    IntValue(i64),
}
