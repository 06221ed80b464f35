"""The official Python SDK as the client. The first argument is a server's program or its address."""

import asyncio
import json
import sys
import time

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def call(session, name, **arguments):
    result = await session.call_tool(name, arguments)
    return json.loads(result.content[0].text)


async def use(session):
    """Every tool once, and what one leaves is there for the next."""
    names = [tool.name for tool in (await session.list_tools()).tools]
    for name in ["terminal", "read_file", "write_file", "patch", "search_files"]:
        assert name in names, names
    assert (await call(session, "terminal", command="cd /tmp; X=1; echo hi"))["output"] == "hi"
    assert (await call(session, "terminal", command="pwd; echo $X"))["output"] == "/tmp\n1"
    wrote = await call(session, "write_file", path="/workspace/a/note.py", content="x = 1\n")
    assert wrote["bytes_written"] == 6, wrote
    patched = await call(
        session, "patch", mode="replace", path="/workspace/a/note.py", old_string="1", new_string="2"
    )
    assert patched["success"], patched
    assert (await call(session, "read_file", path="/workspace/a/note.py"))["content"] == "1|x = 2"
    found = await call(session, "search_files", pattern="x =", path="/workspace")
    assert found["total_count"] == 1, found
    wrong = await session.call_tool("read_file", {"path": "/nowhere"})
    assert wrong.content[0].text.find("not found") > 0, wrong


async def over_stdio(program, home):
    server = StdioServerParameters(command=program, args=["--home", home, "mcp"])
    async with stdio_client(server) as (reading, writing), ClientSession(reading, writing) as session:
        await session.initialize()
        await use(session)
        told = []

        async def progress(passed, total, message):
            told.append(passed)

        slow = session.call_tool("terminal", {"command": "sleep 3"}, progress_callback=progress)
        assert json.loads((await slow).content[0].text)["exit_code"] == 0
        assert told and told == sorted(told), told
        # A call that is given up is ended, with what it started.
        begun = time.monotonic()
        given_up = session.call_tool("terminal", {"command": "sleep 61.5; echo late > late"})
        try:
            await asyncio.wait_for(given_up, 2)
            raise AssertionError("it ended by itself")
        except asyncio.TimeoutError:
            pass
        while "sleep 61.5" in (await call(session, "terminal", command="ps -eo args", workdir="/"))["output"]:
            assert time.monotonic() - begun < 40, "still there"


async def over_http(address, token):
    try:
        from mcp.client.streamable_http import streamable_http_client
        from mcp.shared._httpx_utils import create_mcp_http_client

        def connect():
            client = create_mcp_http_client(headers={"Authorization": f"Bearer {token}"})
            return streamable_http_client(address, http_client=client)
    except ImportError:
        from mcp.client.streamable_http import streamablehttp_client

        def connect():
            return streamablehttp_client(address, headers={"Authorization": f"Bearer {token}"})

    async with connect() as one, ClientSession(one[0], one[1]) as first:
        await first.initialize()
        await use(first)
        async with connect() as two, ClientSession(two[0], two[1]) as second:
            await second.initialize()
            other = await call(second, "terminal", command="ls /workspace")
            assert other["output"] == "", other
        assert (await call(first, "terminal", command="ls /workspace"))["output"] == "a"


where, more = sys.argv[1:]
asyncio.run(over_http(where, more) if where.startswith("http") else over_stdio(where, more))
print("all of it worked")
