"""PyPI's hermes-agent as the client: its own MCP support, its own registry, many awkward calls."""

import json
import sys
import threading

from tools.mcp_tool import register_mcp_servers, shutdown_mcp_servers
from tools.registry import registry

program, home = sys.argv[1:]
names = register_mcp_servers(
    {"hermetic": {"command": program, "args": ["--home", home, "mcp"], "timeout": 60}}
)


def raw(tool, **arguments):
    name = next(name for name in names if name.endswith(f"__{tool}"))
    answer = registry.dispatch(name, arguments)
    return json.loads(answer) if isinstance(answer, str) else answer


def call(tool, **arguments):
    answer = raw(tool, **arguments)
    inner = answer.get("result", answer)
    return json.loads(inner) if isinstance(inner, str) else inner


def says(command, **more):
    return call("terminal", command=command, **more)["output"]


def refusal(tool, **arguments):
    """The client hands what a tool calls an error on as one."""
    return json.dumps(raw(tool, **arguments))


def files():
    assert call("write_file", path="/workspace/f.txt", content="one\ntwo\n")["bytes_written"] == 8
    v4a = "*** Begin Patch\n*** Update File: /workspace/f.txt\n one\n-two\n+2\n*** End Patch"
    assert call("patch", mode="patch", patch=v4a)["success"]
    assert call("read_file", path="/workspace/f.txt")["content"] == "1|one\n2|2"
    assert call("search_files", pattern="one", path="/workspace")["total_count"] == 1
    long = "x" * 3_000_000
    assert call("write_file", path="/workspace/long", content=long)["bytes_written"] == len(long)
    assert call("read_file", path="/workspace/long")["content"].endswith("[truncated]")
    odd = 'a"b\\c\td\u2028e\U0001f600 \'quoted\' $(not run) `nor this`\r\n'
    call("write_file", path="/workspace/odd name", content=odd)
    assert says("md5sum < 'odd name'", workdir="/workspace").split()[0] == md5(odd)
    assert "not found" in refusal("read_file", path="/workspace/g.txt")
    says("head -c 4096 /dev/urandom > /workspace/blob; ln -s /etc/passwd /workspace/link")
    assert "binary" in refusal("read_file", path="/workspace/blob")
    assert "root:" in call("read_file", path="/workspace/link")["content"]
    assert " times (lines" in refusal(
        "patch", mode="replace", path="/workspace/odd name", old_string="e", new_string="x"
    )
    assert "Search failed" in refusal("search_files", pattern="(")
    assert call("search_files", pattern="*.txt", target="files", path="/workspace")["total_count"] == 1


def shell():
    assert says("cd /tmp && echo hi") == "hi"
    assert says("pwd") == "/tmp"
    for command, code in [
        ("exit 7", 7), ("false", 1), ("kill -9 $$", 137), ("exec false", 1), ("echo 'open", 2), ("cat", 0),
        ("set -e; false", 1), ("no-such-thing", 127), ("printf '\\377\\000'", 0),
    ]:
        ran = call("terminal", command=command)
        assert ran["exit_code"] == code, (command, ran)
        assert says("pwd") == "/tmp", command
    timed = call("terminal", command="sleep 99", timeout=1)
    assert timed["exit_code"] == 124 and "timed out after 1s" in timed["output"], timed
    assert "left out" in says("yes | head -c 3000000")
    assert "background=true" in refusal("terminal", command="sleep 99 &")
    assert call("terminal", command="pwd", workdir="/nowhere")["exit_code"] == 126


def processes():
    begun = call("terminal", command="cat; echo over", background=True)
    session = begun["session_id"]
    assert call("process", action="submit", session_id=session, data="a line")["status"] == "ok"
    assert call("process", action="close", session_id=session)["status"] == "ok"
    waited = call("process", action="wait", session_id=session, timeout=30)
    assert (waited["status"], waited["output"], waited["exit_code"]) == ("exited", "a line\nover", 0), waited
    begun = call("terminal", command="sleep 98", background=True)
    killed = call("process", action="kill", session_id=begun["session_id"])
    assert killed["completion_reason"] == "killed", killed
    assert "not_found" in refusal("process", action="poll", session_id="proc_nope")


def code():
    ran = call("execute_code", code="from hermes_tools import terminal\nprint(terminal('echo in')['output'])")
    assert (ran["status"], ran["output"], ran["tool_calls_made"]) == ("success", "in", 1), ran
    assert "ZeroDivisionError" in refusal("execute_code", code="1/0")
    assert "51" not in call("execute_code", code="""
from hermes_tools import read_file
print([i for i in range(60) if 'error' in read_file('/workspace/f.txt') and i < 50])""")["output"]
    answers = []
    threads = [
        threading.Thread(target=lambda n=n: answers.append(call("execute_code", code=f"print({n})")["output"]))
        for n in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [str(n) for n in range(6)], answers


def md5(text):
    import hashlib

    return hashlib.md5(text.encode()).hexdigest()


try:
    for part in [shell, files, processes, code, shell]:
        part()
        assert says("ls -d /tmp/hermes_exec_* 2>/dev/null; ps -eo args | grep -c '[s]leep 9'; true") == "0", part
finally:
    shutdown_mcp_servers()
print("all of it worked")
