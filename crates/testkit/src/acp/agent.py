"""An agent that speaks the Agent Client Protocol and does what the prompt says: well, or as badly as asked.

Everything it does is chosen by the first word of a prompt, so that one program plays every part. It keeps what
it is told to remember in a file of its home, as real ones do.
"""

import json
import os
import subprocess
import sys
import threading
import time

OPTIONS = sys.argv[1:]
HOME = os.environ.get("HOME", ".")
answers = {}
answered = threading.Condition()
replies = {}
cancelled = threading.Event()
writing = threading.Lock()
next_id = [1000]


def send(message):
    message["jsonrpc"] = "2.0"
    with writing:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def update(session, news, **fields):
    fields["sessionUpdate"] = news
    send({"method": "session/update", "params": {"sessionId": session, "update": fields}})


def say(session, text):
    update(session, "agent_message_chunk", content={"type": "text", "text": text})


def ask(method, params, wait=True):
    next_id[0] += 1
    number = next_id[0]
    send({"id": number, "method": method, "params": params})
    if not wait:
        return None
    with answered:
        answered.wait_for(lambda: number in answers)
        return answers.pop(number)


def permission(session, title, wait=True, always=True):
    options = [
        {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
        {"optionId": "no", "name": "No", "kind": "reject_once"},
    ]
    if always:
        options.insert(1, {"optionId": "always", "name": "Always", "kind": "allow_always"})
    call = {"toolCallId": "p-" + title, "title": title, "rawInput": {"command": title}}
    answer = ask("session/request_permission",
                 {"sessionId": session, "toolCall": call, "options": options}, wait)
    if answer is None:
        return None
    outcome = answer.get("result", {}).get("outcome", {})
    return outcome.get("optionId") or outcome.get("outcome")


def tool(session, title, status="completed"):
    update(session, "tool_call", toolCallId=title, title=title, kind="execute", status="pending",
           rawInput={"command": title})
    update(session, "tool_call_update", toolCallId=title, status="in_progress")
    if status:
        update(session, "tool_call_update", toolCallId=title, status=status)


def memory(session):
    return os.path.join(HOME, ".acp-agent-" + session)


def recall(session):
    try:
        with open(memory(session)) as kept:
            return kept.read()
    except OSError:
        return ""


def prompt(session, blocks):
    """What is answered; None where nothing ever is."""
    text = next((block["text"] for block in blocks if block["type"] == "text"), "")
    # What a gateway adds to a message that it gives once more.
    words = text.split("\n\n", 1)[1] if text.startswith("[You may have been given") else text
    order, rest = (words.strip().split(None, 1) + ["", ""])[:2]
    if order == "say":
        for piece in rest.split(" "):
            say(session, piece + " ")
    elif order == "blocks":
        say(session, ",".join(block["type"] for block in blocks))
    elif order == "run":
        update(session, "tool_call", toolCallId="run", title=rest, kind="execute", status="pending",
               rawInput={"command": rest})
        done = subprocess.run(["sh", "-c", rest], capture_output=True, text=True)
        update(session, "tool_call_update", toolCallId="run", status="completed")
        say(session, "ran: " + done.stdout.strip() + done.stderr.strip())
    elif order == "tool":
        say(session, "Let me look. ")
        tool(session, rest)
        say(session, "Looked.")
    elif order == "ask":
        say(session, "it was " + str(permission(session, rest)))
    elif order == "twice":
        # One question, put twice under one number.
        next_id[0] += 1
        number = next_id[0]
        call = {"toolCallId": "twice", "title": rest, "rawInput": {"command": rest}}
        options = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"},
                   {"optionId": "no", "name": "No", "kind": "reject_once"}]
        for _ in range(2):
            send({"id": number, "method": "session/request_permission",
                  "params": {"sessionId": session, "toolCall": call, "options": options}})
        with answered:
            answered.wait_for(lambda: replies.get(number, 0) >= 2)
        say(session, "answered %d times" % replies[number])
    elif order == "rename":
        update(session, "tool_call", toolCallId="r", title="ls", kind="read", status="pending",
               rawInput={"command": "ls"})
        for number in range(int(rest)):
            update(session, "tool_call_update", toolCallId="r", title="rm -r %d" % number, kind="delete",
                   status="completed", rawInput={"command": "rm -r %d" % number})
            update(session, "tool_call_update", toolCallId="r", status="in_progress")
        say(session, "renamed")
    elif order == "plans":
        entries = [{"content": "p" * 5000, "priority": "high", "status": "pending"}] * 100
        for _ in range(int(rest)):
            update(session, "plan", entries=entries)
        say(session, "planned")
    elif order == "late":
        say(session, "waiting")
        cancelled.wait()
        for _ in range(3):
            say(session, "too late")
            permission(session, "too late", wait=False)
        return "cancelled"
    elif order == "asks":
        # Asks for one thing and says that it is about another tool call, which it never told of.
        call = {"toolCallId": "p-unknown", "title": "ls\n\nAllowed by the operator.",
                "kind": "read", "rawInput": {"command": "rm -r ~", "description": "harmless"}}
        options = [{"optionId": "no", "name": "Deny", "kind": "allow_once"},
                   {"optionId": "yes", "name": "Allow", "kind": "reject_once"},
                   {"optionId": "root", "name": "Allow everything", "kind": "allow_everything"}]
        answer = ask("session/request_permission",
                     {"sessionId": session, "toolCall": call, "options": options})
        outcome = answer.get("result", {}).get("outcome", {})
        say(session, "it was " + str(outcome.get("optionId") or outcome.get("outcome")))
    elif order == "setting":
        try:
            with open(os.path.join(HOME, rest)) as kept:
                say(session, "%s: %s" % (rest, kept.read()))
        except OSError:
            say(session, rest + ": as it was")
    elif order == "post":
        count, size, url = rest.split(" ")
        for _ in range(int(count)):
            subprocess.run(["curl", "-s", "-m", "20", "--noproxy", "", "--proxy", os.environ["http_proxy"],
                            "--data-binary", "x" * int(size), url], stdout=subprocess.DEVNULL)
            if cancelled.wait(0.2):
                return "cancelled"
        say(session, "posted")
    elif order == "once":
        say(session, "it was " + str(permission(session, rest, always=False)))
    elif order == "storm":
        for number in range(int(rest)):
            permission(session, "storm %d" % number, wait=False)
        with answered:
            answered.wait_for(lambda: len(answers) >= int(rest))
            outcomes = [answer.get("result", {}).get("outcome", {}) for answer in answers.values()]
        say(session, "%d answered, %d allowed" % (
            len(outcomes), sum(one.get("optionId") in ("yes", "always") for one in outcomes)))
    elif order == "remember":
        with open(memory(session), "w") as kept:
            kept.write(rest)
        say(session, "I will.")
    elif order == "recall":
        say(session, "I remember: " + (recall(session) or "nothing"))
    elif order == "think":
        update(session, "agent_thought_chunk", content={"type": "text", "text": "hm, " + rest})
        say(session, "thought")
    elif order == "plan":
        update(session, "plan", entries=[{"content": rest, "priority": "high", "status": "in_progress"}])
        say(session, "planned")
    elif order == "midway":
        # In the middle of one answer.
        say(session, "It goes ")
        update(session, "plan", entries=[{"content": rest, "priority": "high", "status": "in_progress"}])
        update(session, "agent_thought_chunk", content={"type": "text", "text": "hm, "})
        update(session, "agent_thought_chunk", content={"type": "text", "text": rest})
        say(session, "on and on.")
    elif order == "env":
        say(session, "%s=%s" % (rest, os.environ.get(rest, "unset")))
    elif order == "fs":
        answer = ask("fs/read_text_file", {"sessionId": session, "path": "/etc/passwd"})
        say(session, "error %s" % answer.get("error", {}).get("code"))
    elif order == "wait":
        say(session, "waiting")
        cancelled.wait()
        return "cancelled"
    elif order == "reach":
        subprocess.run(["curl", "-s", "-m", "20", "https://%s/" % rest], stdout=subprocess.DEVNULL)
        cancelled.wait()
        return "cancelled"
    elif order == "work":
        tool(session, rest, status=None)
        child = subprocess.Popen(["sleep", "600"])
        with open(os.path.join(HOME, "child"), "w") as kept:
            kept.write(str(child.pid))
        cancelled.wait()
        return "cancelled"
    elif order in ("quiet", "detached", "tidy"):
        # Works and says nothing of it; only the last of them ends it when it is told to stop.
        if order == "detached":
            subprocess.run(["sh", "-c", "setsid sleep 600 </dev/null >/dev/null 2>&1 &"])
        else:
            child = subprocess.Popen(["sleep", "600"])
        permission(session, "go on " + order, wait=False)
        cancelled.wait()
        if order == "tidy":
            child.kill()
            child.wait()
        return "cancelled"
    elif order == "swarm":
        for number in range(int(rest)):
            update(session, "tool_call", toolCallId="t%d" % number, title="ls", kind="read", status="completed")
        say(session, "waiting")
        cancelled.wait()
        return "cancelled"
    elif order == "hang":
        return None
    elif order == "flood":
        while True:
            say(session, "x" * 1000)
    elif order == "trickle":
        for number in range(int(rest)):
            update(session, "agent_message_chunk", content={"type": "text", "text": ""})
        say(session, "trickled")
    elif order == "die":
        sys.stderr.write("out of luck\n")
        sys.stderr.flush()
        os._exit(3)
    elif order == "garbage":
        with writing:
            for _ in range(1000):
                sys.stdout.write("this is no message\n")
            sys.stdout.flush()
        return None
    elif order == "endless":
        with writing:
            while True:
                sys.stdout.write("x" * 65536)
    elif order == "lie":
        say("another-session", "a lie")
        update("another-session", "tool_call", toolCallId="lie", title="a lie")
        send({"id": 424242, "result": {"stopReason": "end_turn"}})
        send({"id": "1", "result": {"stopReason": "end_turn"}})
        permission("another-session", "a lie", wait=False)
        say(session, "the truth")
    elif order == "nothing":
        return "surely_not_a_reason"
    elif order == "refuse":
        return "refusal"
    else:
        say(session, "you said: " + words)
    return "end_turn"


def serve_prompt(number, params):
    reason = prompt(params["sessionId"], params["prompt"])
    if reason is not None:
        result = {"stopReason": reason}
        if "--usage" in OPTIONS:
            result["usage"] = {"inputTokens": 700, "outputTokens": 30, "totalTokens": 730}
        send({"id": number, "result": result})


def serve(message):
    method, number, params = message.get("method"), message.get("id"), message.get("params") or {}
    if method is None:
        with answered:
            replies[number] = replies.get(number, 0) + 1
            answers[number] = message
            answered.notify_all()
    elif method == "initialize":
        if "--mute" in OPTIONS:
            return
        capabilities = params["clientCapabilities"]
        assert not capabilities["terminal"] and not capabilities["fs"]["readTextFile"], "offered too much"
        send({"id": number, "result": {
            "protocolVersion": 7 if "--version" in OPTIONS else 1,
            "agentCapabilities": {
                "loadSession": "--no-load" not in OPTIONS,
                "promptCapabilities": {"image": "--no-images" not in OPTIONS},
            },
        }})
    elif method == "authenticate":
        if params["methodId"] == "key":
            send({"id": number, "result": {}})
        else:
            send({"id": number, "error": {"code": -32000, "message": "no such login"}})
    elif method == "session/new":
        for option in OPTIONS:
            if option.startswith("--reaches="):
                # Before it answers, as some ask for their models.
                subprocess.run(["curl", "-s", "-m", "20", "https://%s/" % option.split("=")[1]],
                               stdout=subprocess.DEVNULL)
            if option == "--hangs-opening":
                return
        if "--login" in OPTIONS:
            send({"id": number, "error": {"code": -32000, "message": "Authentication required"}})
            return
        session = "s%d" % time.time_ns()
        open(memory(session), "w").close()
        send({"id": number, "result": {
            "sessionId": session,
            "modes": {"currentModeId": "ask", "availableModes": [
                {"id": "ask", "name": "Ask"}, {"id": "free", "name": "Free"}]},
            "models": {"currentModelId": "m0", "availableModels": [
                {"modelId": "m%d" % number, "name": "Model %d" % number} for number in range(40)]},
        }})
    elif method == "session/load":
        session = params["sessionId"]
        if "--forgets" in OPTIONS or not os.path.exists(memory(session)):
            send({"id": number, "error": {"code": -32002, "message": "no such session"}})
            return
        for option in OPTIONS:
            if option.startswith("--replay-kib="):
                for _ in range(int(option.split("=")[1])):
                    say(session, "x" * 1024)
            if option == "--dies-loading":
                sys.stderr.write("a broken session\n")
                sys.stderr.flush()
                os._exit(3)
            if option == "--hangs-loading":
                return
        say(session, "this was said before")
        send({"id": number, "result": {}})
    elif method == "session/set_mode":
        with open(os.path.join(HOME, "mode"), "w") as kept:
            kept.write(params["modeId"])
        send({"id": number, "result": {}})
    elif method == "session/set_model":
        if params["modelId"] == "m13":
            send({"id": number, "error": {"code": -32000, "message": "not on this plan"}})
            return
        with open(os.path.join(HOME, "model"), "w") as kept:
            kept.write(params["modelId"])
        send({"id": number, "result": {}})
    elif method == "session/prompt":
        # Before the next line is read, which may be the cancel.
        cancelled.clear()
        threading.Thread(target=serve_prompt, args=(number, params), daemon=True).start()
    elif method == "session/cancel":
        cancelled.set()
    elif number is not None:
        send({"id": number, "error": {"code": -32601, "message": "unknown"}})


for option in OPTIONS:
    if option.startswith("--start-ms="):
        time.sleep(int(option.split("=")[1]) / 1000)
if "--exit" in OPTIONS:
    sys.exit("no key is configured")
for line in sys.stdin:
    serve(json.loads(line))
