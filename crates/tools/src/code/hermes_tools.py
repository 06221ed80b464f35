"""The tools of this conversation, for scripts: from hermes_tools import terminal, read_file, ..."""

import json as _json
import os as _os
import shlex as _shlex
import socket as _socket
import threading as _threading
import time as _time

_AT_ONCE = 8
_state = {"owner": None}


def _pool():
    # A forked child must not share its parent's connections.
    if _state["owner"] != _os.getpid():
        _state.update(owner=_os.getpid(), idle=[], slots=_threading.BoundedSemaphore(_AT_ONCE))
    return _state["idle"], _state["slots"]


_pool()


def _connect():
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    connection.connect(_os.environ["HERMES_RPC_SOCKET"])
    return connection, connection.makefile("rb")


def _call(tool, args):
    token = _os.environ["HERMES_RPC_TOKEN"]
    args = {name: value for name, value in args.items() if value is not None}
    request = _json.dumps({"tool": tool, "args": args, "token": token}).encode() + b"\n"
    idle, slots = _pool()
    with slots:
        try:
            connection, answers = idle.pop() if idle else _connect()
            connection.sendall(request)
            line = answers.readline()
        except OSError as error:
            raise RuntimeError("the tool socket is gone") from error
        if not line.endswith(b"\n"):
            raise RuntimeError("the tool socket is gone")
        idle.append((connection, answers))
    return _json.loads(line)


def json_parse(text):
    """json.loads that takes control characters inside strings."""
    return _json.loads(text, strict=False)


def shell_quote(text):
    """Quotes text for a shell command."""
    return _shlex.quote(text)


def retry(fn, max_attempts=3, delay=2):
    """Calls fn until it does not raise, waiting longer each time."""
    for attempt in range(max_attempts):
        try:
            return fn()
        except Exception:
            if attempt + 1 == max_attempts:
                raise
            _time.sleep(delay * 2**attempt)


#:: web_search
def web_search(query, limit=5):
    return _call("web_search", {"query": query, "limit": limit})


#:: web_extract
def web_extract(urls, char_limit=None):
    return _call("web_extract", {"urls": urls, "char_limit": char_limit})


#:: read_file
def read_file(path, offset=1, limit=500):
    return _call("read_file", {"path": path, "offset": offset, "limit": limit})


#:: write_file
def write_file(path, content):
    return _call("write_file", {"path": path, "content": content})


#:: search_files
def search_files(pattern, target="content", path=".", file_glob=None, limit=50, offset=0,
                 output_mode="content", context=0):
    return _call("search_files", {"pattern": pattern, "target": target, "path": path,
                                  "file_glob": file_glob, "limit": limit, "offset": offset,
                                  "output_mode": output_mode, "context": context})


#:: patch
def patch(path=None, old_string=None, new_string=None, replace_all=False, mode="replace",
          patch=None):
    return _call("patch", {"mode": mode, "path": path, "old_string": old_string,
                           "new_string": new_string, "replace_all": replace_all, "patch": patch})


#:: terminal
def terminal(command, timeout=None, workdir=None):
    return _call("terminal", {"command": command, "timeout": timeout, "workdir": workdir})
