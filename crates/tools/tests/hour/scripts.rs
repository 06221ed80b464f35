//! Scripts that call tools, fail, hang and pretend.

use super::awkward::{Awkward, script};

pub(super) fn calls() -> Vec<Awkward> {
    vec![
        script(
            "from concurrent.futures import ThreadPoolExecutor as P\nfrom hermes_tools import terminal\n\
             print(sorted(P(8).map(lambda n: int(terminal(f'echo {n}')['output']), range(20))) == list(range(20)))",
            &["True"],
        ),
        script(
            "from hermes_tools import *\nwrite_file('big', 'z' * 3_000_000)\n\
             print(len(terminal('cat big')['output']) > 40_000, read_file('big')['file_size'])",
            &["True 3000000"],
        ),
        script(
            "from hermes_tools import terminal\n\
             print([n for n in range(26) if 'error' in terminal('true') and terminal('true')['error']][:1])",
            &["[25]", "\"tool_calls_made\":50"],
        ),
        script(
            "import os, json, socket\ns = socket.socket(socket.AF_UNIX)\ns.connect(os.environ['HERMES_RPC_SOCKET'])\n\
             s.sendall(json.dumps({'tool': 'terminal', 'args': {'command': 'touch forged'}, 'token': 'x' * 64}).encode() + b'\\n')\n\
             print(s.recv(1000), os.path.exists('forged'))",
            &["the token is not", "False"],
        ),
        script(
            "import os\nif os.fork() == 0: os.setsid(); os.execlp('sleep', 'sleep', '7100')\nprint('left')",
            &["left"],
        ),
        script("print('hello')", &["hello", "success"]),
        script(
            "import hermes_tools as t\nprint(t.terminal('pwd')['output'])",
            &["/tmp/session"],
        ),
        script(
            "import hermes_tools as t\nprint(t.terminal('sleep 7100', timeout=1)['exit_code'])",
            &["124"],
        ),
        Awkward {
            fresh: true,
            ..script(
                "import hermes_tools as t\nprint(t.terminal('exit 3')['exit_code'])",
                &["3"],
            )
        },
        script("def f(:\n", &["SyntaxError", "\"status\":\"error\""]),
        script("import no_such_module", &["ModuleNotFoundError"]),
        script("from hermes_tools import no_such_tool", &["ImportError"]),
        script("import os; os.kill(os.getpid(), 9)", &["\"exit_code\":137"]),
        script("import os; os._exit(0)", &["success"]),
        script("input()", &["EOFError"]),
        script("print('x' * 200000)", &["\"stdout_truncated\":true"]),
        script(
            "import sys; sys.stderr.write('only to stderr')",
            &["success"],
        ),
        script(
            "import os, shutil; shutil.rmtree(os.path.dirname(__file__)); print('gone')",
            &["gone"],
        ),
        script(
            "import threading, time\nthreading.Thread(target=time.sleep, args=(0.1,)).start()\nprint('main done')",
            &["main done"],
        ),
        script(
            "print('correct-horse-' + 'battery-staple')",
            &["[redacted]"],
        ),
        script("while True: pass", &["\"status\":\"timeout\""]),
        script("", &["not empty"]),
    ]
}
