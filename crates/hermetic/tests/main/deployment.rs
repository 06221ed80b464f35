//! What `hermetic compose` writes, built and started on a real engine, and the checks a person would make.

mod stack;

use stack::{Stack, engine};

/// One after the other: both publish the same port.
#[test]
fn both_variants_hold_as_written() {
    let Some(engine) = engine("both_variants_hold_as_written") else {
        return;
    };
    let image = engine.build();
    tight(&image.start("tight"));
    plain(&image.start("plain"));
}

/// Only the proxy has a way out.
fn tight(stack: &Stack) {
    // It should fail: no way out, by name or by address.
    let outside = stack.outside();
    for url in ["https://allowed.test/", &format!("https://{outside}/")] {
        assert!(stack.curl("gateway", &[url]).is_err(), "{url} was reached");
    }
    // It should succeed: the internal network.
    let inside = stack.curl("gateway", &["http://dashboard:9119/health"]);
    assert!(inside.is_ok(), "{inside:?}");
    // And the other way round; the dashboard has no way out at all, not even by the proxy's name for it.
    let gateway = stack.curl("dashboard", &["http://gateway:9119/health"]);
    assert!(gateway.is_ok(), "{gateway:?}");
    let shown = stack.curl("gateway", &["http://dashboard:9119/health"]);
    assert!(shown.unwrap().contains("reachable"));
    assert!(stack.curl("dashboard", &["https://allowed.test/"]).is_err());
    // It should succeed: what is allowed, by the proxy.
    let proxied = |url: &str| {
        let by = ["--proxy", "http://egress-proxy:3128", url];
        stack.curl("gateway", &by)
    };
    let allowed = proxied("https://allowed.test/");
    assert!(allowed.is_ok(), "{allowed:?}");
    for url in ["https://other.test/", &format!("https://{outside}/")] {
        let refused = proxied(url).unwrap_err();
        assert!(refused.contains("403"), "{url}: {refused}");
    }
    // And so does a sandbox in it, by its own rules and then by the proxy's.
    let reached = stack.sandbox_curl("allowed.test", "https://allowed.test/");
    assert!(reached.is_ok(), "{reached:?}");
    for (allow, url) in [
        ("other.test", "https://other.test/"),
        ("allowed.test", "https://other.test/"),
        ("egress-proxy:3128", "http://egress-proxy:3128/health"),
        ("dashboard:9119", "http://dashboard:9119/health"),
    ] {
        let refused = stack.sandbox_curl(allow, url);
        assert!(refused.is_err(), "{allow}, {url}: {refused:?}");
    }
    let counted = stack.in_sandbox(&["--", "python3", "-c", "print(6 * 7)"]);
    assert_eq!(counted.unwrap().trim(), "42");
    stack.is_published_on_loopback_only();
    stack.becomes_healthy();
    stack.has_sandboxes();
    stack.says_how_limits_are_kept();
}

/// The gateway leaves by itself; who is beside it does not.
fn plain(stack: &Stack) {
    let direct = stack.curl("gateway", &["https://allowed.test/"]);
    assert!(direct.is_ok(), "{direct:?}");
    let inside = stack.curl("gateway", &["http://dashboard:9119/health"]);
    assert!(inside.is_ok(), "{inside:?}");
    let outside = stack.outside();
    for url in ["https://allowed.test/", &format!("https://{outside}/")] {
        assert!(stack.curl_beside(&[url]).is_err(), "{url} was reached");
    }
    let beside = stack.curl_beside(&["http://dashboard:9119/health"]);
    assert!(beside.is_ok(), "{beside:?}");
    // The proxy only carries the dashboard's port here.
    let by = [
        "--proxy",
        "http://egress-proxy:3128",
        "https://allowed.test/",
    ];
    let refused = stack.curl_beside(&by).unwrap_err();
    assert!(refused.contains("403"), "{refused}");
    stack.is_published_on_loopback_only();
    stack.becomes_healthy();
    stack.has_sandboxes();
    stack.says_how_limits_are_kept();
}
