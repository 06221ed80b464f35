"""Asks a daemon what it answers to what, and prints it as JSON.

  probes.py URL                       a daemon that runs
  probes.py --start CLI JAVA FOLDER   signal-cli itself, in the network namespace that this runs in

The second prints its line when the daemon answers, and ends it when its own input ends.
"""

import fcntl
import http.client
import json
import os
import socket
import struct
import subprocess
import sys
import time
from urllib.parse import urlsplit

ABSENT = "+4915100000099"
JSON = "application/json"
PORT = 18120


def rpc(method, params=None, **fields):
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params or {}, **fields})


# Name, method, path, type of the body, body.
PROBES = [
    ("check", "GET", "/api/v1/check", None, None),
    ("no such path", "GET", "/api/v2/check", None, None),
    ("a call by GET", "GET", "/api/v1/rpc", None, None),
    ("another type", "POST", "/api/v1/rpc", "text/plain", rpc("version", id=1)),
    ("a notification", "POST", "/api/v1/rpc", JSON, rpc("version")),
    ("version", "POST", "/api/v1/rpc", JSON, rpc("version", id=1)),
    ("no such method", "POST", "/api/v1/rpc", JSON, rpc("fly", id=1)),
    ("no such account", "POST", "/api/v1/rpc", JSON, rpc("send", {"account": ABSENT, "message": "x"}, id=1)),
    ("receive for no account", "POST", "/api/v1/rpc", JSON, rpc("receive", {"account": ABSENT}, id=1)),
    ("version of no account", "POST", "/api/v1/rpc", JSON, rpc("version", {"account": ABSENT}, id=1)),
    ("not JSON", "POST", "/api/v1/rpc", JSON, "{"),
    ("an empty batch", "POST", "/api/v1/rpc", JSON, "[]"),
    ("a batch", "POST", "/api/v1/rpc", JSON, f"[{rpc('version', id=1)},{rpc('fly', id=2)}]"),
    ("events for no account", "GET", f"/api/v1/events?account=%2B{ABSENT[1:]}", None, None),
]


def ask(host, port, method, path, kind, body):
    connection = http.client.HTTPConnection(host, port, timeout=30)
    connection.request(method, path, body, {"Content-Type": kind} if kind else {})
    response = connection.getresponse()
    text = response.read()
    connection.close()
    is_json = (response.getheader("Content-Type") or "").startswith(JSON)
    return [response.status, said(json.loads(text)) if is_json else None]


def said(answer):
    """The code of a refusal, what a result holds, or both of many."""
    if isinstance(answer, list):
        return sorted((said(one) for one in answer), key=str)
    if not isinstance(answer, dict):
        return None
    if "error" in answer:
        return answer["error"]["code"]
    return sorted(answer["result"]) if isinstance(answer.get("result"), dict) else None


def probe(host, port):
    return {name: ask(host, port, *rest) for name, *rest in PROBES}


def loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        # SIOCSIFFLAGS with IFF_UP | IFF_RUNNING.
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh14x", b"lo", 0x41))


def start(cli, java, folder):
    loopback_up()
    arguments = [cli, "--config", f"{folder}/data", "daemon", "--http", f"127.0.0.1:{PORT}"]
    arguments += ["--socket", f"{folder}/socket", "--receive-mode=on-connection"]
    environment = {**os.environ, "JAVA_HOME": java, "HOME": folder}
    daemon = subprocess.Popen(arguments, env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            try:
                ask("127.0.0.1", PORT, "GET", "/api/v1/check", None, None)
                break
            except OSError:
                time.sleep(0.1)
        print(json.dumps(probe("127.0.0.1", PORT)), flush=True)
        sys.stdin.read()
    finally:
        daemon.terminate()
        daemon.wait()


if sys.argv[1] == "--start":
    start(*sys.argv[2:])
else:
    url = urlsplit(sys.argv[1])
    print(json.dumps(probe(url.hostname, url.port)))
