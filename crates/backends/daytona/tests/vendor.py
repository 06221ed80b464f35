"""Daytona's own client against the test service: each thing our backend relies on, and its answer."""

import asyncio
import sys

from daytona import (
    CreateSandboxFromImageParams,
    CreateSandboxFromSnapshotParams,
    Daytona,
    DaytonaConfig,
    ListSandboxesQuery,
    Resources,
    SessionExecuteRequest,
)

url, key = sys.argv[1:3]
client = Daytona(DaytonaConfig(api_key=key, api_url=url, target="eu"))


def same(seen, expected):
    assert seen == expected, f"{seen!r} is not {expected!r}"


# Made from an image, with a size, labels and no network, as ours are.
sandbox = client.create(
    CreateSandboxFromImageParams(
        name="of-the-vendor",
        image="debian:12",
        labels={"story": "vendor"},
        resources=Resources(cpu=2, memory=3, disk=4),
        network_block_all=True,
        auto_stop_interval=7,
        auto_delete_interval=-1,
    )
)
same(sandbox.state.value, "started")
same((sandbox.name, sandbox.cpu, sandbox.memory, sandbox.disk), ("of-the-vendor", 2, 3, 4))
same((sandbox.network_block_all, sandbox.auto_stop_interval), (True, 7))
same(sandbox.labels["story"], "vendor")

# Commands.
done = sandbox.process.exec("echo out; echo err >&2; exit 3")
same((done.exit_code, done.result), (3, "out\nerr\n"))
same(sandbox.process.exec("echo $A; pwd", cwd="/tmp", env={"A": "b"}).result, "b\n/tmp\n")

# Sessions keep their state, and have logs: all at once, and as they come.
sandbox.process.create_session("one")
sandbox.process.execute_session_command("one", SessionExecuteRequest(command="cd /usr; X=5"))
done = sandbox.process.execute_session_command("one", SessionExecuteRequest(command="pwd; echo $X"))
same((done.exit_code, done.stdout), (0, "/usr\n5\n"))
later = sandbox.process.execute_session_command(
    "one",
    SessionExecuteRequest(command="for i in 1 2 3; do echo $i; sleep 0.2; done; echo e >&2", run_async=True),
)
out, err = [], []
asyncio.run(sandbox.process.get_session_command_logs_async("one", later.cmd_id, out.append, err.append))
same(("".join(out), "".join(err)), ("1\n2\n3\n", "e\n"))
same(sandbox.process.get_session_command_logs("one", later.cmd_id).stdout, "1\n2\n3\n")
same(sandbox.process.get_session_command("one", later.cmd_id).exit_code, 0)
sandbox.process.delete_session("one")

# Files, binary ones too.
content = bytes(range(256)) * 1000
sandbox.fs.upload_file(content, "/tmp/some/file.bin")
same(sandbox.fs.download_file("/tmp/some/file.bin"), content)
same(sandbox.process.exec("wc -c < /tmp/some/file.bin").result.strip(), "256000")

# A terminal.
terminal = sandbox.process.create_pty_session(id="terminal")
terminal.send_input("echo from-$((40 + 2)); exit 5\n")
seen = bytearray()
ended = terminal.wait(on_data=seen.extend, timeout=60)
assert b"from-42" in seen, bytes(seen)
same(ended.exit_code, 5)

# Found again by name and by label, over more than one page.
others = [client.create(CreateSandboxFromSnapshotParams(labels={"story": "more"})) for _ in range(3)]
same(client.get("of-the-vendor").id, sandbox.id)
same([one.id for one in client.list(ListSandboxesQuery(labels={"story": "vendor"}))], [sandbox.id])
same(len(list(client.list(ListSandboxesQuery(labels={"story": "more"})))), 3)
for one in others:
    one.delete(wait=True)

# Stopped, started with its files, in use, deleted.
sandbox.stop()
same(client.get(sandbox.id).state.value, "stopped")
sandbox.start()
same(sandbox.fs.download_file("/tmp/some/file.bin"), content)
sandbox.refresh_activity()
sandbox.delete(wait=True)
try:
    client.get("of-the-vendor")
except Exception as error:
    assert "not found" in str(error), error
else:
    raise AssertionError("it is still there")

# Who has no key is told so.
try:
    Daytona(DaytonaConfig(api_key="wrong", api_url=url, target="eu")).get("any")
except Exception as error:
    assert "Unauthorized" in str(error), error
else:
    raise AssertionError("a wrong key was accepted")

print("all of it worked")
