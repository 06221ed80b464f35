"""PyPI's hermes-agent as the client: its own MCP support, its own registry."""

import json
import sys

from tools.mcp_tool import register_mcp_servers, shutdown_mcp_servers
from tools.registry import registry

program, home = sys.argv[1:]
names = register_mcp_servers(
    {"hermetic": {"command": program, "args": ["--home", home, "mcp"], "timeout": 60}}
)


def call(tool, **arguments):
    name = next(name for name in names if name.endswith(f"__{tool}"))
    answer = registry.dispatch(name, arguments)
    answer = json.loads(answer) if isinstance(answer, str) else answer
    inner = answer.get("result", answer)
    return json.loads(inner) if isinstance(inner, str) else inner


try:
    assert call("terminal", command="cd /tmp && echo hi")["output"] == "hi"
    assert call("terminal", command="pwd")["output"] == "/tmp"
    assert call("write_file", path="/workspace/f.txt", content="one\ntwo\n")["bytes_written"] == 8
    v4a = "*** Begin Patch\n*** Update File: /workspace/f.txt\n one\n-two\n+2\n*** End Patch"
    assert call("patch", mode="patch", patch=v4a)["success"]
    assert call("read_file", path="/workspace/f.txt")["content"] == "1|one\n2|2"
    assert call("search_files", pattern="one", path="/workspace")["total_count"] == 1
finally:
    shutdown_mcp_servers()
print("all of it worked")
