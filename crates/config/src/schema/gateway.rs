//! `gateway:`: the running gateway and its sandboxes.

use super::{BACKENDS, DAY, SchemaKey, TEXTS, ValueShape, YEAR, count, key, seconds};

const BYTES: ValueShape = ValueShape::Size { unit: 1, least: 0 };
const MEGABYTES: ValueShape = ValueShape::Size {
    unit: 1 << 20,
    least: 1 << 20,
};

pub(super) fn keys() -> Vec<SchemaKey> {
    vec![
        key(
            "gateway.terminal_backend",
            BACKENDS,
            "",
            "where commands from chats run; `local` must be spelled out here",
        ),
        key(
            "gateway.sandbox_image",
            ValueShape::Text,
            "",
            "image for chats; terminal.docker_image if not written",
        ),
        key(
            "gateway.sandbox_lifetime",
            seconds(YEAR),
            "3600",
            "idle seconds before a conversation's sandbox is let go",
        ),
        key(
            "gateway.sandbox_pool",
            count(0, 1000),
            "0",
            "sandboxes kept ready for new conversations",
        ),
        key(
            "gateway.max_sandboxes",
            count(1, 100_000),
            "",
            "sandboxes alive at once; as many as the machine has memory and descriptors for if not written",
        ),
        key(
            "gateway.max_sandboxes_per_user",
            count(1, 100_000),
            "",
            "of these, one person's in all their conversations; idle ones make room; a quarter if not written",
        ),
        key(
            "gateway.max_turns_per_user",
            count(1, 1_000_000),
            "8",
            "turns of one person at work at once, in all their conversations; the rest wait in order",
        ),
        key(
            "gateway.disk_reserve",
            MEGABYTES,
            "512",
            "disk kept free for the gateway's own rows, in MB or spelled; at most a twentieth of the file system",
        ),
        key(
            "gateway.sandboxes_disk",
            MEGABYTES,
            "",
            "disk of all sandboxes together, in MB or spelled; four fifths of the file system if not written",
        ),
        key(
            "gateway.store",
            ValueShape::Secret,
            "",
            "postgres://user:password@host/database for the rows that last; a file in the state folder if not written",
        )
        .overruled_by("HERMETIC_STORE"),
        key(
            "gateway.share_work",
            ValueShape::Flag,
            "false",
            "serve together with the other gateways on one PostgreSQL; a start that could not is refused",
        ),
        key(
            "gateway.delivery_ledger",
            ValueShape::Flag,
            "true",
            "send a reply again after a crash, marked as a possible duplicate",
        ),
        key(
            "gateway.platform_connect_timeout",
            ValueShape::Number {
                least: -1.0,
                most: 3600.0,
            },
            "30",
            "seconds to reach a platform; 0 or less waits forever",
        )
        .overruled_by("HERMES_GATEWAY_PLATFORM_CONNECT_TIMEOUT"),
        key(
            "gateway.max_inbound_media_bytes",
            BYTES,
            "134217728",
            "largest file taken from a chat; 0 for no bound",
        ),
        key(
            "gateway.strict",
            ValueShape::Flag,
            "false",
            "send only files that the sandbox made",
        )
        .mirrored_by("HERMES_MEDIA_DELIVERY_STRICT"),
        key(
            "gateway.media_delivery_allow_dirs",
            TEXTS,
            "",
            "folders whose files may be sent",
        )
        .mirrored_by("HERMES_MEDIA_ALLOW_DIRS"),
        key(
            "gateway.message_timestamps.enabled",
            ValueShape::Flag,
            "false",
            "show the model when a message was written",
        ),
        key(
            "gateway.api_server.max_concurrent_runs",
            count(1, 10_000),
            "10",
            "runs at once by the API",
        ),
        key(
            "gateway.restart_loop_guard.max_restarts",
            count(0, 1000),
            "3",
            "restarts before resuming stops",
        ),
        key(
            "gateway.restart_loop_guard.window_seconds",
            seconds(DAY),
            "60",
            "counted within",
        ),
        key(
            "gateway.respawn_storm.max_starts",
            count(1, 1000),
            "5",
            "starts before waiting",
        )
        .overruled_by("HERMES_GATEWAY_MAX_STARTS"),
        key(
            "gateway.respawn_storm.window_seconds",
            seconds(DAY),
            "120",
            "counted within",
        )
        .overruled_by("HERMES_GATEWAY_START_WINDOW_S"),
        key(
            "gateway.proxy",
            ValueShape::Text,
            "",
            "an HTTP proxy for the gateway's own requests and for what leaves sandboxes; HTTPS_PROXY if not written, `none` for none",
        )
        .overruled_by("HERMETIC_PROXY"),
        key(
            "gateway.no_proxy",
            ValueShape::Text,
            "",
            "hosts reached without the proxy: names, `.suffix`, addresses, ranges; NO_PROXY if not written",
        )
        .overruled_by("HERMETIC_NO_PROXY"),
        key(
            "gateway.telemetry.otlp.endpoint",
            ValueShape::Text,
            "",
            "where traces are sent by OTLP over HTTP, as in http://127.0.0.1:4318; none if not written",
        )
        .mirrored_by("OTEL_EXPORTER_OTLP_ENDPOINT"),
        key(
            "gateway.telemetry.otlp.headers",
            ValueShape::Pairs,
            "",
            "headers for the collector, such as its key; OTEL_EXPORTER_OTLP_HEADERS if not written",
        ),
        key(
            "gateway.telemetry.otlp.service_name",
            ValueShape::Text,
            "hermetic",
            "the name under which the collector shows this gateway",
        )
        .mirrored_by("OTEL_SERVICE_NAME"),
        key(
            "gateway.dashboard.host",
            ValueShape::Text,
            "127.0.0.1",
            "address of the dashboard",
        )
        .overruled_by("HERMETIC_DASHBOARD_HOST"),
        key(
            "gateway.dashboard.port",
            count(0, 65_535),
            "9119",
            "port of the dashboard",
        )
        .overruled_by("HERMETIC_DASHBOARD_PORT"),
        key(
            "gateway.dashboard.enabled",
            ValueShape::Flag,
            "true",
            "whether there are pages beside /health and /metrics",
        )
        .overruled_by("HERMETIC_DASHBOARD_ENABLED"),
        key(
            "gateway.dashboard.password",
            ValueShape::Secret,
            "",
            "a password that lets an operator in, besides one-time links",
        )
        .overruled_by("HERMETIC_DASHBOARD_PASSWORD"),
        key(
            "gateway.dashboard.proxy_secret",
            ValueShape::Secret,
            "",
            "what a reverse proxy sends in X-Hermetic-Proxy-Secret, so that its word about who asks counts",
        )
        .overruled_by("HERMETIC_DASHBOARD_PROXY_SECRET"),
        key(
            "gateway.dashboard.proxy_user_header",
            ValueShape::Text,
            "X-Forwarded-User",
            "the header in which that proxy names the person",
        ),
        key(
            "gateway.dashboard.proxy_operators",
            TEXTS,
            "",
            "people of that proxy who may act; others may look",
        ),
        key(
            "gateway.dashboard.names",
            TEXTS,
            "",
            "host names under which the dashboard may be asked for, besides localhost and addresses",
        ),
    ]
}
