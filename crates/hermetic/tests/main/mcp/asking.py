"""The official Python SDK as a client whose user answers questions. Arguments: program, home, marker."""

import asyncio
import json
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import ElicitResult

program, home = sys.argv[1:]
answers = [
    ElicitResult(action="decline"),
    ElicitResult(action="accept", content={}),
    ElicitResult(action="accept", content={"allow": True}),
    ElicitResult(action="cancel"),
]
asked = []


async def answer(_, params):
    asked.append(params)
    return answers[len(asked) - 1]


async def main():
    server = StdioServerParameters(command=program, args=["--home", home, "mcp"], env={**os.environ, "HOME": home})
    async with stdio_client(server) as (reading, writing):
        async with ClientSession(reading, writing, elicitation_callback=answer) as session:
            await session.initialize()
            file = os.path.join(home, ".bashrc")
            for count in range(len(answers)):
                result = await session.call_tool("write_file", {"path": file, "content": f"# {count}\n"})
                said = json.loads(result.content[0].text)
                if count == 2:
                    assert said["bytes_written"] == 4, said
                else:
                    assert "refused" in said["error"] and said["status"] == "blocked", said
            # The floor is not asked about.
            result = await session.call_tool("terminal", {"command": "rm -rf /"})
            assert "never run" in result.content[0].text, result
    assert open(file).read() == "# 2\n"
    assert len(asked) == len(answers), asked
    assert ".bashrc" in asked[0].message, asked[0]


asyncio.run(main())
print("all of it worked")
