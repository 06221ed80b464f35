// A terminal in the page: draws what a shell writes and sends what is typed. Everything that comes from inside is
// put into the page as text and as nothing else.
"use strict";

(() => {
  const root = document.getElementById("terminal");
  if (!root) return;
  const byId = (id) => document.getElementById(id);
  const [view, history, grid, keys, said, state] =
    ["terminal-view", "terminal-history", "terminal-grid", "terminal-keys", "terminal-said", "terminal-state"].map(byId);
  const [again, close] = ["terminal-again", "terminal-close"].map(byId);
  const form = byId("terminal-form");
  root.hidden = false;

  const MOST_WAITING = 1 << 20;
  const MOST_AT_ONCE = 8192;

  let id = null;
  let screen = null;
  let drawn = { kept: 0, cursor: -1 };
  let scheduled = false;

  const say = (words) => { state.textContent = words; };
  const post = (path, fields) => {
    const body = new URLSearchParams({ csrf: form.elements.csrf.value, ...fields });
    return fetch(path, { method: "POST", body, credentials: "same-origin", redirect: "error" });
  };
  const refusal = async (answer) => {
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const words = page.querySelector("main p:not(.brand)");
    return words ? words.textContent : "That did not work.";
  };

  // ---- size

  const measure = () => {
    const probe = document.createElement("span");
    probe.textContent = "W".repeat(20);
    probe.className = "probe";
    grid.append(probe);
    const { width, height } = probe.getBoundingClientRect();
    probe.remove();
    const style = getComputedStyle(view);
    const room = (side) => parseFloat(style[`padding${side}`]) || 0;
    return {
      columns: Math.min(500, Math.max(2, Math.floor((view.clientWidth - room("Left") - room("Right")) / (width / 20)))),
      rows: Math.min(200, Math.max(2, Math.floor((view.clientHeight - room("Top") - room("Bottom")) / height))),
    };
  };

  let resizing = null;
  const fit = () => {
    if (!screen) return;
    const { columns, rows } = measure();
    if (columns === screen.columns && rows === screen.rows) return;
    screen.resize(columns, rows);
    draw();
    clearTimeout(resizing);
    resizing = setTimeout(() => { if (id) post("/terminal/resize", { id, columns, rows }).catch(() => {}); }, 100);
  };
  new ResizeObserver(fit).observe(view);

  // ---- drawing

  const STEPS = [0, 95, 135, 175, 215, 255];
  const colour = (code) => {
    if (code >= 0x1000000) return `#${(code & 0xffffff).toString(16).padStart(6, "0")}`;
    if (code >= 232) return `rgb(${Array(3).fill(8 + (code - 232) * 10).join(",")})`;
    const cube = code - 16;
    return `rgb(${[Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6].map((step) => STEPS[step]).join(",")})`;
  };

  const dress = (span, pen, isCursor) => {
    const classes = ["bold", "dim", "italic", "underline", "inverse", "strike"].filter((name) => pen[name]);
    if (isCursor) classes.push("cursor");
    for (const [side, code] of [["fg", pen.fg], ["bg", pen.bg]]) {
      if (code === null) continue;
      if (code < 16) classes.push(`${side}-${code}`);
      else span.style[side === "fg" ? "color" : "backgroundColor"] = colour(code);
    }
    if (classes.length > 0) span.className = classes.join(" ");
  };

  const drawRow = (element, row, cursor) => {
    const spans = [];
    let run = null;
    row.cells.forEach((cell, x) => {
      if (cell.wide === 0) return;
      const isCursor = x === cursor;
      if (run && cell.wide === 1 && run.pen === cell.pen && !run.alone && !isCursor) {
        run.text += cell.text;
        return;
      }
      run = { text: cell.text, pen: cell.pen, alone: isCursor || cell.wide === 2, wide: cell.wide, isCursor };
      spans.push(run);
    });
    element.replaceChildren(...spans.map((one) => {
      const span = document.createElement("span");
      span.textContent = one.text;
      dress(span, one.pen, one.isCursor);
      if (one.wide === 2) span.classList.add("wide");
      return span;
    }));
  };

  const render = () => {
    scheduled = false;
    const atEnd = view.scrollHeight - view.scrollTop - view.clientHeight < 40;
    while (grid.children.length < screen.rows) grid.append(document.createElement("div"));
    while (grid.children.length > screen.rows) grid.lastChild.remove();
    const cursor = screen.modes.cursor && id ? screen.y : -1;
    screen.lines.forEach((row, y) => {
      if (!row.dirty && y !== cursor && y !== drawn.cursor) return;
      drawRow(grid.children[y], row, y === cursor ? screen.x : -1);
      row.dirty = false;
    });
    drawn.cursor = cursor;
    if (screen.kept.length < drawn.kept) history.replaceChildren();
    const fresh = screen.kept.filter((row) => !row.shown);
    if (screen.kept.length === 0) history.replaceChildren();
    for (const row of fresh) {
      const line = document.createElement("div");
      drawRow(line, row, -1);
      row.shown = true;
      history.append(line);
    }
    while (history.children.length > screen.kept.length) history.firstChild.remove();
    drawn.kept = screen.kept.length;
    if (atEnd) view.scrollTop = view.scrollHeight;
    announce();
  };
  const draw = () => {
    if (scheduled) return;
    scheduled = true;
    requestAnimationFrame(render);
  };

  // For whoever does not see the screen: what was printed, once it stands still for a moment.
  let announcing = null;
  const announce = () => {
    if (screen.said.trim() === "") return;
    clearTimeout(announcing);
    announcing = setTimeout(() => {
      const line = document.createElement("div");
      line.textContent = screen.said.slice(-1000);
      screen.said = "";
      said.append(line);
      while (said.children.length > 20) said.firstChild.remove();
    }, 250);
  };

  // ---- the way in

  const encoder = new TextEncoder();
  let waiting = [];
  let waitingBytes = 0;
  let sending = false;
  const send = async () => {
    if (sending) return;
    sending = true;
    try {
      while (waiting.length > 0 && id) {
        // Keys of one kind go together: what a person typed, or what the screen answered by itself.
        const { typed } = waiting[0];
        const bytes = [];
        while (waiting.length > 0 && waiting[0].typed === typed && bytes.length < MOST_AT_ONCE) {
          const first = waiting[0].bytes;
          const taken = first.subarray(0, MOST_AT_ONCE - bytes.length);
          bytes.push(...taken);
          if (taken.length < first.length) waiting[0].bytes = first.subarray(taken.length);
          else waiting.shift();
        }
        waitingBytes -= bytes.length;
        const text = btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
        const answer = await post("/terminal/keys", { id, keys: text, typed: typed ? "yes" : "no" });
        if (!answer.ok) {
          say(await refusal(answer));
          waiting = [];
          waitingBytes = 0;
        }
      }
    } catch {
      say("The gateway does not answer.");
      waiting = [];
      waitingBytes = 0;
    } finally {
      sending = false;
    }
  };
  const type = (text, typed = true) => {
    if (!id || text === "") return;
    const bytes = encoder.encode(text);
    if (waitingBytes + bytes.length > (typed ? MOST_WAITING : 4096)) {
      if (typed) say("That is too much at once, and was not typed.");
      return;
    }
    waiting.push({ bytes, typed });
    waitingBytes += bytes.length;
    if (typed) view.scrollTop = view.scrollHeight;
    send();
  };

  // ---- keys

  const NAMED = { Enter: "\r", Tab: "\t", Escape: "\x1b", Backspace: "\x7f", Delete: "\x1b[3~", Insert: "\x1b[2~",
    PageUp: "\x1b[5~", PageDown: "\x1b[6~", F1: "\x1bOP", F2: "\x1bOQ", F3: "\x1bOR", F4: "\x1bOS", F5: "\x1b[15~",
    F7: "\x1b[18~", F8: "\x1b[19~", F9: "\x1b[20~", F10: "\x1b[21~", F11: "\x1b[23~", F12: "\x1b[24~" };
  const MOVES = { ArrowUp: "A", ArrowDown: "B", ArrowRight: "C", ArrowLeft: "D", End: "F", Home: "H" };
  let holdsControl = false;

  const ofKey = (event) => {
    const { key, ctrlKey, altKey, shiftKey } = event;
    if (MOVES[key]) {
      const held = 1 + (shiftKey ? 1 : 0) + (altKey ? 2 : 0) + (ctrlKey ? 4 : 0);
      if (held > 1) return `\x1b[1;${held}${MOVES[key]}`;
      return `\x1b${screen.modes.keypad ? "O" : "["}${MOVES[key]}`;
    }
    if (key === "Tab" && shiftKey) return "\x1b[Z";
    if (NAMED[key]) return (altKey ? "\x1b" : "") + NAMED[key];
    if (ctrlKey && !altKey && key.length === 1) return ofControl(key);
    if (altKey && !ctrlKey && key.length === 1) return `\x1b${key}`;
    return null;
  };
  const ofControl = (key) => {
    if (key === " " || key === "@" || key === "2") return "\0";
    if (key === "?" || key === "8") return "\x7f";
    if (/^[a-zA-Z[\\\]^_]$/.test(key)) return String.fromCharCode(key.toUpperCase().charCodeAt(0) & 31);
    return null;
  };

  keys.addEventListener("keydown", (event) => {
    if (!screen || event.isComposing || event.metaKey) return;
    // Nobody is caught in here: this key leads out, as between the parts of a window.
    if (event.key === "F6") {
      event.preventDefault();
      (event.shiftKey ? byId("main") : close).focus();
      return;
    }
    // Copying and pasting stay with the browser.
    if (event.ctrlKey && event.shiftKey) return;
    if (event.ctrlKey && event.key === "c" && !getSelection().isCollapsed) return;
    if (event.ctrlKey && event.key === "v") return;
    const text = ofKey(event);
    if (text === null) return;
    event.preventDefault();
    type(text);
  });
  keys.addEventListener("input", (event) => {
    if (event.isComposing) return;
    const text = keys.value;
    keys.value = "";
    if (holdsControl && text.length === 1) {
      holdControl(false);
      type(ofControl(text) ?? text);
      return;
    }
    type(text.replaceAll("\n", "\r"));
  });
  keys.addEventListener("compositionend", () => {
    type(keys.value);
    keys.value = "";
  });
  keys.addEventListener("paste", (event) => {
    event.preventDefault();
    const pasted = event.clipboardData.getData("text/plain").replaceAll("\r\n", "\r").replaceAll("\n", "\r");
    // What somebody else wrote must not end the paste, nor steer the program.
    const text = pasted.replace(/[\x00-\x08\x0a-\x0c\x0e-\x1f\x7f-\x9f]/g, "");
    type(screen && screen.modes.bracketed ? `\x1b[200~${text}\x1b[201~` : text);
  });
  view.addEventListener("click", () => { if (getSelection().isCollapsed) keys.focus(); });

  const holdControl = (on) => {
    holdsControl = on;
    byId("terminal-control").setAttribute("aria-pressed", String(on));
  };
  byId("terminal-control").addEventListener("click", () => {
    holdControl(!holdsControl);
    keys.focus();
  });
  for (const button of root.querySelectorAll("button[data-key]")) {
    button.addEventListener("click", () => {
      if (screen) type(ofKey({ key: button.dataset.key }));
      keys.focus();
    });
  }

  // ---- the way out

  const ended = (words) => {
    id = null;
    say(words);
    again.hidden = false;
    close.hidden = true;
    waiting = [];
    waitingBytes = 0;
    draw();
  };

  const frames = async (reader) => {
    let buffer = new Uint8Array(0);
    let words = "The gateway does not answer any more.";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return words;
      const joined = new Uint8Array(buffer.length + value.length);
      joined.set(buffer);
      joined.set(value, buffer.length);
      buffer = joined;
      while (buffer.length >= 5) {
        const length = new DataView(buffer.buffer, buffer.byteOffset).getUint32(1);
        if (buffer.length < 5 + length) break;
        const payload = buffer.subarray(5, 5 + length);
        switch (String.fromCharCode(buffer[0])) {
          case "o":
            id = new TextDecoder().decode(payload);
            say("Open.");
            // The window may have changed while the shell was started.
            fit();
            break;
          case "d":
            screen.write(payload);
            draw();
            break;
          case "e":
            words = new TextDecoder().decode(payload);
            break;
        }
        buffer = buffer.subarray(5 + length);
      }
    }
  };

  const open = async () => {
    again.hidden = true;
    close.hidden = false;
    const { columns, rows } = measure();
    screen = new TerminalScreen(columns, rows, (text) => type(text, false));
    history.replaceChildren();
    grid.replaceChildren();
    drawn = { kept: 0, cursor: -1 };
    draw();
    say("Opening…");
    keys.focus();
    try {
      const answer = await post("/terminal/open", { key: form.elements.key.value, columns, rows });
      if (!answer.ok) {
        ended(await refusal(answer));
        return;
      }
      ended(await frames(answer.body.getReader()));
    } catch {
      ended("The gateway does not answer any more.");
    }
  };
  again.addEventListener("click", open);
  close.addEventListener("click", () => { if (id) post("/terminal/close", { id }).catch(() => {}); });
  open();
})();
