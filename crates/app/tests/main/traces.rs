//! Traces of a message's life, as a collector gets them that was made of OpenTelemetry's own definitions.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

use hermetic_testkit::model::Reply;
use hermetic_testkit::pypi;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use crate::approvals::{self, Deed};
use crate::lab::{ALICE, BOB, Lab, calls_terminal};

/// Far more than anything here takes.
const LONG: Duration = Duration::from_secs(60);

/// Prints each span that it is sent, a line each, read by OpenTelemetry's own classes.
const COLLECTOR: &str = r#"
import gzip, json, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse

class Collector(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers["Content-Encoding"] == "gzip":
            body = gzip.decompress(body)
        request = ExportTraceServiceRequest()
        request.ParseFromString(body)
        unknown = request.SerializeToString(deterministic=True) != body and len(request.SerializeToString()) != len(body)
        for resource in request.resource_spans:
            service = {one.key: one.value.string_value for one in resource.resource.attributes}
            for scope in resource.scope_spans:
                for span in scope.spans:
                    print(json.dumps({
                        "path": self.path, "type": self.headers["Content-Type"], "key": self.headers["X-Api-Key"],
                        "unknown": unknown, "service": service.get("service.name"), "scope": scope.scope.name,
                        "trace": span.trace_id.hex(), "id": span.span_id.hex(), "parent": span.parent_span_id.hex(),
                        "name": span.name, "kind": span.kind, "began": span.start_time_unix_nano,
                        "ended": span.end_time_unix_nano, "failed": span.status.code == 2,
                        "attributes": {one.key: one.value.string_value or one.value.int_value for one in span.attributes},
                    }), flush=True)
        answer = ExportTraceServiceResponse().SerializeToString()
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass

server = HTTPServer(("127.0.0.1", 0), Collector)
print(server.server_address[1], flush=True)
server.serve_forever()
"#;

struct Collector {
    _child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    port: u16,
}

impl Collector {
    async fn start() -> Result<Self, String> {
        let (packages, python) =
            pypi::package("opentelemetry-proto", "1.45.2", "opentelemetry").await?;
        let mut child = Command::new(python)
            .args(["-c", COLLECTOR])
            .env("PYTHONPATH", packages)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| error.to_string())?;
        let stdout = child.stdout.take().ok_or("no output")?;
        let mut lines = BufReader::new(stdout).lines();
        let port = timeout(LONG, lines.next_line()).await;
        let port = port
            .map_err(|_| "it says nothing")?
            .map_err(|error| error.to_string())?;
        let port = port.ok_or("it ended")?.parse().map_err(|_| "no port")?;
        Ok(Self {
            _child: child,
            lines,
            port,
        })
    }

    async fn span(&mut self) -> Value {
        let line = timeout(LONG, self.lines.next_line()).await.expect("a span");
        serde_json::from_str(&line.unwrap().expect("it goes on")).unwrap()
    }

    /// Spans, by name, until this many messages have ended.
    async fn until(&mut self, messages: usize) -> Vec<Value> {
        let mut spans = Vec::new();
        let count =
            |spans: &[Value], name: &str| spans.iter().filter(|span| span["name"] == name).count();
        while count(&spans, "message") < messages || count(&spans, "delivery") < messages {
            spans.push(self.span().await);
        }
        spans
    }
}

#[tokio::test]
async fn a_messages_life_is_one_trace_that_a_collector_understands() {
    let test = "a_messages_life_is_one_trace_that_a_collector_understands";
    let mut collector = match Collector::start().await {
        Ok(collector) => collector,
        Err(why) => {
            eprintln!("SKIP: {test}: {why}");
            return;
        }
    };
    let deed = Deed::new();
    let script = [
        calls_terminal(&deed.command()),
        Reply::streams(&["Done, swordfish."]),
    ];
    let config = format!(
        "gateway: {{terminal_backend: local, telemetry: {{otlp: {{\
         endpoint: 'http://127.0.0.1:{}', headers: {{X-Api-Key: collectors-own-key}}, service_name: hut}}}}}}\n\
         approvals: {{mode: manual, approvers: ['telegram:7']}}\n",
        collector.port
    );
    let mut lab = Lab::builder().config(&config).script(script).start().await;
    lab.ask_through(BOB, "a secret word: swordfish", ALICE)
        .await;
    approvals::press(&lab, ALICE, ALICE, "Allow once");
    let answered = |record: &hermetic_testkit::chat::Record| {
        let texts = record.messages_in(&BOB.into());
        texts.iter().any(|message| message.text().contains("Done"))
    };
    lab.chat().wait_for("an answer", answered).await;
    // The last spans leave with the gateway.
    lab.stop().await;
    let spans = collector.until(1).await;
    let root = spans.iter().find(|span| span["name"] == "message").unwrap();
    let of =
        |name: &str| -> Vec<&Value> { spans.iter().filter(|span| span["name"] == name).collect() };
    let turn = of("turn")[0];
    assert_eq!(root["parent"], "");
    for (name, many, parent) in [
        ("receipt", 1, root),
        ("queue", 1, root),
        ("turn", 1, root),
        ("delivery", 1, root),
        ("model", 2, turn),
        ("tool", 1, turn),
        ("approval", 1, turn),
    ] {
        assert_eq!(of(name).len(), many, "{name}: {spans:#?}");
        assert!(
            of(name).iter().all(|span| span["parent"] == parent["id"]),
            "{name}"
        );
    }
    let mut ids = BTreeMap::new();
    for span in &spans {
        assert_eq!(span["trace"], root["trace"]);
        assert_eq!(span["trace"].as_str().unwrap().len(), 32);
        assert_eq!(span["id"].as_str().unwrap().len(), 16);
        assert!(span["began"].as_u64() <= span["ended"].as_u64(), "{span}");
        assert_eq!(span["path"], "/v1/traces");
        assert_eq!(span["type"], "application/x-protobuf");
        assert_eq!(span["key"], "collectors-own-key");
        assert_eq!(
            (&span["service"], &span["scope"]),
            (&"hut".into(), &"hermetic".into())
        );
        assert_eq!(span["unknown"], false, "all of it is in the definitions");
        assert_eq!(span["failed"], false);
        *ids.entry(span["id"].clone().to_string()).or_insert(0) += 1;
    }
    assert!(ids.values().all(|count| *count == 1), "{ids:?}");
    let (tool, asked) = (of("tool")[0], of("approval")[0]);
    assert!(tool["began"].as_u64() <= asked["began"].as_u64());
    assert!(asked["ended"].as_u64() <= tool["ended"].as_u64());
    assert_eq!(tool["attributes"]["hermetic.tool"], "terminal");
    assert_eq!(root["attributes"]["hermetic.platform"], "telegram");
    let said = serde_json::to_string(&spans).unwrap();
    for word in ["swordfish", "dm:8", "telegram:8", "chmod", "Done"] {
        assert!(!said.contains(word), "{word} is nobody's business: {said}");
    }
}

/// PyPI `rotel`: a whole collector that others wrote, which hands on what it took.
struct Rotel {
    _child: Child,
    port: u16,
}

impl Rotel {
    async fn start(onward: u16) -> Result<Self, String> {
        let (packages, _) = pypi::package("rotel", "0.0.1a15", "rotel").await?;
        // A free port may be somebody else's a moment later.
        for _ in 0..3 {
            let port = TcpListener::bind("127.0.0.1:0").await;
            let port = port.and_then(|free| free.local_addr());
            let port = port.map_err(|error| error.to_string())?.port();
            let mut child = Command::new(packages.join("rotel/rotel-agent"))
                .args(["start", "--otlp-grpc-endpoint", "127.0.0.1:0"])
                .args(["--otlp-http-endpoint", &format!("127.0.0.1:{port}")])
                .args(["--batch-timeout", "100ms", "--exporter", "otlp"])
                .args(["--otlp-exporter-protocol", "http"])
                .arg("--otlp-exporter-endpoint")
                .arg(format!("http://127.0.0.1:{onward}"))
                .env("NO_PROXY", "127.0.0.1")
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .kill_on_drop(true)
                .spawn()
                .map_err(|error| error.to_string())?;
            let listens = async {
                while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
                    if !matches!(child.try_wait(), Ok(None)) {
                        return false;
                    }
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                true
            };
            if timeout(LONG, listens).await.unwrap_or(false) {
                return Ok(Self {
                    _child: child,
                    port,
                });
            }
        }
        Err("it does not listen".to_owned())
    }
}

#[tokio::test]
async fn a_collector_of_others_takes_a_trace_and_hands_all_of_it_on() {
    let test = "a_collector_of_others_takes_a_trace_and_hands_all_of_it_on";
    let both = async {
        let behind = Collector::start().await?;
        let rotel = Rotel::start(behind.port).await?;
        Ok::<_, String>((behind, rotel))
    };
    let (mut behind, rotel) = match both.await {
        Ok(both) => both,
        Err(why) => {
            eprintln!("SKIP: {test}: {why}");
            return;
        }
    };
    let script = [calls_terminal("true"), Reply::streams(&["Done."])];
    let config = format!(
        "gateway: {{telemetry: {{otlp: {{endpoint: 'http://127.0.0.1:{}', service_name: hut}}}}}}\n",
        rotel.port
    );
    let mut lab = Lab::builder().config(&config).script(script).start().await;
    assert_eq!(lab.ask(ALICE, "go").await, "Done.");
    lab.stop().await;
    let mut spans = Vec::new();
    // In the order of its batches: the root may come before what is in it.
    while spans.len() < 8 {
        spans.push(behind.span().await);
    }
    let mut names: Vec<_> = spans
        .iter()
        .map(|span| span["name"].as_str().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "delivery", "message", "model", "model", "queue", "receipt", "tool", "turn"
        ]
    );
    let ids: Vec<_> = spans.iter().map(|span| &span["id"]).collect();
    for span in &spans {
        assert_eq!(span["trace"], spans[0]["trace"]);
        assert_eq!(
            (&span["service"], &span["unknown"]),
            (&"hut".into(), &false.into())
        );
        assert!(
            span["parent"] == "" || ids.contains(&&span["parent"]),
            "{span}"
        );
    }
}

#[tokio::test]
async fn a_collector_that_hangs_or_refuses_holds_up_nothing() {
    // It takes connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let config = |address: String| {
        format!("gateway: {{telemetry: {{otlp: {{endpoint: 'http://{address}'}}}}}}\n")
    };
    let address = silent.local_addr().unwrap().to_string();
    let mut lab = Lab::builder()
        .config(&config(address))
        .script([Reply::streams(&["hello"]), Reply::streams(&["again"])])
        .start()
        .await;
    assert_eq!(lab.ask(ALICE, "hi").await, "hello");
    let (_held, _) = timeout(LONG, silent.accept()).await.unwrap().unwrap();
    assert_eq!(lab.ask(ALICE, "hi").await, "again");
    // Nor the end: what is under way is cut. A request alone may take ten seconds.
    let stopping = std::time::Instant::now();
    lab.stop().await;
    assert!(stopping.elapsed() < Duration::from_secs(8), "{stopping:?}");
    drop(lab);
    // One that says no: what it does not take is counted as lost.
    let refusing = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = refusing.local_addr().unwrap().to_string();
    let serving = tokio::spawn(async move {
        while let Ok((mut stream, _)) = refusing.accept().await {
            let mut seen = vec![0; 1 << 16];
            let _ = stream.read(&mut seen).await;
            let no = "HTTP/1.1 400 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            let _ = stream.write_all(no.as_bytes()).await;
        }
    });
    let lab = Lab::builder()
        .config(&config(address))
        .script([Reply::streams(&["hello"])])
        .start()
        .await;
    assert_eq!(lab.ask(ALICE, "hi").await, "hello");
    let lost = async {
        loop {
            let text = metrics(&lab).await;
            let line = text
                .lines()
                .find(|line| line.contains("trace_spans_exported_total{outcome=\"failed\"}"));
            if line.is_some_and(|line| !line.ends_with(" 0")) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(LONG, lost).await.expect("it is counted");
    serving.abort();
}

#[tokio::test]
async fn nothing_is_sent_or_counted_where_nobody_asked_for_traces() {
    let lab = Lab::builder()
        .script([Reply::streams(&["hello"])])
        .start()
        .await;
    assert_eq!(lab.ask(ALICE, "hi").await, "hello");
    assert!(!metrics(&lab).await.contains("trace_spans"));
}

async fn metrics(lab: &Lab) -> String {
    let mut stream = TcpStream::connect(lab.health()).await.unwrap();
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}
