"""Reads stdin as what the first argument names, and says what is wrong with it."""

import sys

kind, text = sys.argv[1], sys.stdin.buffer.read()
try:
    if kind == "py":
        import ast

        ast.parse(text)
    elif kind == "toml":
        import tomllib

        tomllib.loads(text.decode())
    else:
        import yaml

        for _ in yaml.parse(text):
            pass
except ImportError:
    sys.exit(3)
except SyntaxError as error:
    print(f"SyntaxError: {error.msg} (line {error.lineno}, column {error.offset})")
    sys.exit(1)
except Exception as error:
    print(f"{type(error).__name__}: {error}")
    sys.exit(1)
