"""Modal's own client against our server: argv[1] is its address. What it prints last is checked."""

import sys

import modal

client = modal.Client.from_credentials("ak-test", "as-test")
client.hello()
app = modal.App.lookup("vendor", create_if_missing=True, client=client)
image = modal.Image.from_registry("registry.test/python:3.11")
sandbox = modal.Sandbox.create(
    "sleep", "infinity",
    app=app, image=image, timeout=120, block_network=True, cpu=0.5, memory=256,
    name="vendors-own", tags={"whose": "vendor"}, env={"SAID": "so"}, client=client,
)

process = sandbox.exec("sh", "-c", "echo out; echo err >&2; exit 3")
assert process.stdout.read() == "out\n"
assert process.stderr.read() == "err\n"
assert process.wait() == 3

process = sandbox.exec("cat")
process.stdin.write(b"one\n" + b"x" * 100_000)
process.stdin.drain()
process.stdin.write(b"\ntwo\n")
process.stdin.write_eof()
process.stdin.drain()
assert process.stdout.read() == "one\n" + "x" * 100_000 + "\ntwo\n"
assert process.wait() == 0

assert sandbox.poll() is None
assert sandbox.exec("sh", "-c", "echo kept > /note").wait() == 0
snapshot = sandbox.snapshot_filesystem()
sandbox.terminate()
sandbox.wait(raise_on_termination=False)
assert sandbox.returncode == 137

restored = modal.Sandbox.create(
    "sh", "-c", "cat /note; echo $SAID; exit 7",
    app=app, image=modal.Image.from_id(snapshot.object_id, client=client),
    timeout=120, block_network=True, env={"SAID": "so"}, client=client,
)
assert restored.stdout.read() == "kept\nso\n"
restored.wait()
assert restored.returncode == 7

print("all of it worked")
