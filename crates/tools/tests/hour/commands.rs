//! Commands, one after the other, as nobody should write them.

use serde_json::json;

use super::awkward::{Awkward, call, ends_shell, terminal};

pub(super) fn calls() -> Vec<Awkward> {
    vec![
        terminal("", &["no command"]),
        terminal("   \n", &["no command"]),
        call("terminal", json!({}), &["no command"]),
        call(
            "terminal",
            json!({"command": ["ls"]}),
            &["must be a string"],
        ),
        call(
            "terminal",
            json!({"command": "ls", "timeout": "soon"}),
            &["whole number"],
        ),
        call(
            "terminal",
            json!({"command": "ls", "timeout": 100_000}),
            &["1 to 600"],
        ),
        call(
            "terminal",
            json!({"command": "ls", "workdir": "$HOME; rm -rf /"}),
            &["workdir holds"],
        ),
        call(
            "terminal",
            json!({"command": "pwd", "workdir": "/usr"}),
            &["\"output\":\"/usr\""],
        ),
        terminal("cd /usr/lib && pwd", &["/usr/lib"]),
        terminal("cd /tmp/session", &["\"exit_code\":0"]),
        terminal(
            "cat << 'EOF' > a.py\nprint(\"it's\" + ' \"fine\"')\nEOF\npython3 a.py",
            &["it's \\\"fine\\\""],
        ),
        terminal(
            "cat << EOF > b.txt\n$(echo expanded) `echo too` $((1+1))\nEOF\ncat b.txt",
            &["expanded too 2"],
        ),
        terminal(
            "for i in 1 2 3; do\n  echo \"$i\"\ndone | paste -sd+ | bc 2>/dev/null || echo 6",
            &["6"],
        ),
        terminal(
            "echo \"a\\nb\" 'c\\nd' $'e\\nf'",
            &["a\\\\nb c\\\\nd e\\nf"],
        ),
        terminal("false", &["\"exit_code\":1"]),
        terminal("false; true", &["\"exit_code\":0"]),
        terminal("true | false", &["\"exit_code\":1"]),
        terminal(
            "set -o pipefail; false | true; r=$?; set +o pipefail; (exit $r)",
            &["\"exit_code\":1"],
        ),
        terminal("grep nothing a.py", &["exit_code_meaning"]),
        terminal("ls /nowhere 2>&1 | head -1", &["No such file"]),
        terminal(
            "python3 -c 'import sys; sys.exit(300)'",
            &["\"exit_code\":44"],
        ),
        terminal("bash -c 'kill -SEGV $$'", &["\"exit_code\":139"]),
        terminal("echo 'not closed", &["unexpected EOF"]),
        terminal("echo )", &["syntax error"]),
        terminal("cat <<EOF\nno end", &["no end"]),
        terminal("read x; echo \"[$x]\"", &["[]"]),
        terminal("cat", &["\"exit_code\":0"]),
        terminal("python3", &["\"exit_code\":0"]),
        terminal("ssh-keygen -y -f /nowhere; true", &["\"exit_code\":0"]),
        terminal("yes | head -c 1000000 | wc -c", &["1000000"]),
        terminal("yes | head -c 1000000", &["left out"]),
        terminal("head -c 200000 /dev/urandom", &["\"exit_code\":0"]),
        terminal("printf '\\377\\376\\000\\001'", &["\"exit_code\":0"]),
        terminal(
            "printf '\\033]0;title\\007\\033[2J\\033[1;1Hclear'",
            &["\"output\":\"clear\""],
        ),
        terminal("printf 'no newline'", &["\"output\":\"no newline\""]),
        terminal("printf 'a\\tb\\n'", &["a\\tb"]),
        terminal("echo correct-horse-battery-staple", &["[redacted]"]),
        terminal("printf 'AKIA%s\\n' IOSFODNN7EXAMPLE", &["\"exit_code\":0"]),
        terminal("server &", &["background=true"]),
        terminal("nohup sleep 7100", &["background=true"]),
        terminal("npm run dev", &["background=true"]),
        terminal("python3 -m http.server", &["background=true"]),
        call(
            "terminal",
            json!({"command": "sleep 7100", "timeout": 1}),
            &["\"exit_code\":124", "timed out after 1s"],
        ),
        call(
            "terminal",
            json!({"command": "trap '' TERM; sleep 7100", "timeout": 1}),
            &["\"exit_code\":124"],
        ),
        terminal("trap - TERM", &["\"exit_code\":0"]),
        ends_shell("exit 5", &["\"exit_code\":5"]),
        ends_shell("exec true", &["\"exit_code\":0"]),
        ends_shell("set -e; false", &["\"exit_code\":1"]),
        ends_shell("kill -9 $$", &["\"exit_code\":137"]),
        terminal("alias ls=false; unalias ls; ls a.py", &["a.py"]),
        terminal("cd() { echo mine; }; unset -f cd", &["\"exit_code\":0"]),
        terminal(
            "exec 2>/dev/null; exec 1>&-; echo lost",
            &["\"exit_code\":"],
        ),
        terminal("IFS=x; PATH=/usr/bin:/bin; unset IFS", &["\"exit_code\":0"]),
        terminal(
            "mkdir -p gone && cd gone && rmdir ../gone && cd /tmp/session",
            &["\"exit_code\":0"],
        ),
        terminal("ulimit -n", &["\"exit_code\":0"]),
        terminal("(sleep 0.05; echo late) ; echo early", &["late\\nearly"]),
        call(
            "terminal",
            json!({"command": "tput cols; test -t 1 && echo tty", "pty": true}),
            &["120\\ntty"],
        ),
        call(
            "terminal",
            json!({"command": "sleep 7100", "pty": true, "timeout": 1}),
            &["\"exit_code\":124"],
        ),
        call(
            "process",
            json!({"action": "list"}),
            &["\"status\":\"running\""],
        ),
        call(
            "process",
            json!({"action": "poll", "session_id": "proc_nope"}),
            &["not_found"],
        ),
        call("process", json!({"action": "dance"}), &["must be one of"]),
        call("process", json!({}), &["must be one of"]),
        terminal(
            "printf '__HERMES_CWD_0__/etc__HERMES_CWD_0__\\n'",
            &["__HERMES_CWD_0__"],
        ),
        terminal(
            "printf 'exit_code\": 99, \"\\n'; (exit 3)",
            &["\"exit_code\":3"],
        ),
        terminal(
            "echo 0 >&63 2>/dev/null; echo 0 >&61 2>/dev/null; true",
            &["\"exit_code\":0"],
        ),
        terminal(
            "python3 -c 'print(\"y\" * 5000000)'",
            &["left out", "\"exit_code\":0"],
        ),
        terminal("sleep 7100 & echo held; kill $!; wait; true", &["held"]),
        terminal("{ sleep 0.2; echo late; } & echo early; wait", &["early"]),
        terminal("cat <(echo sub) <<< here -", &["sub\\nhere"]),
        terminal("echo $((1 / 0)); echo next", &["division by 0"]),
        terminal("declare -r fixed=1; fixed=2; echo after", &["readonly"]),
        terminal(
            "f() { f; }; (ulimit -s 256; f) 2>/dev/null; echo survived",
            &["survived"],
        ),
        terminal("stty -echo; tput clear; true", &["\"exit_code\":0"]),
        terminal(
            "trap 'echo trapped' EXIT DEBUG; trap - EXIT DEBUG",
            &["\"exit_code\":0"],
        ),
        // It is an interactive bash, with a prompt that nobody sees.
        ends_shell("PROMPT_COMMAND='exit 9'", &["\"exit_code\":9"]),
        terminal(
            "PS1='$(kill -9 0)' PROMPT_COMMAND=false; unset PS1 PROMPT_COMMAND; printf() { :; }; eval() { :; }; unset -f printf eval",
            &["\"exit_code\":0"],
        ),
    ]
}
