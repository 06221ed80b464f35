// The screen of a terminal: bytes of a shell in, rows of characters out. It knows the sequences that programs use
// to draw, and no others. What could do more than draw is passed over: titles, clipboards, links, files, pictures,
// colours of the page, reports of what is on the screen. Whatever comes, its memory has a bound.
"use strict";

class TerminalScreen {
  static MOST_KEPT = 2000;
  static MOST_PARAMETERS = 32;
  static LONGEST_STRING = 65536;
  static LINES = "◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·";

  // `reply` is given the few answers that programs wait for.
  constructor(columns, rows, reply) {
    this.reply = reply;
    this.decoder = new TextDecoder();
    this.columns = columns;
    this.rows = rows;
    this.reset();
  }

  reset() {
    this.plain = Object.freeze({ fg: null, bg: null, bold: false, dim: false, italic: false, underline: false,
      inverse: false, strike: false });
    this.pen = this.plain;
    this.main = this.blankRows(this.rows);
    this.lines = this.main;
    this.kept = [];
    this.isAlternate = false;
    this.x = 0;
    this.y = 0;
    this.wrapNext = false;
    this.top = 0;
    this.bottom = this.rows - 1;
    this.saved = null;
    this.modes = { wrap: true, cursor: true, origin: false, insert: false, keypad: false, bracketed: false };
    this.charsets = ["B", "B"];
    this.charset = 0;
    this.state = "ground";
    this.last = " ";
    this.said = "";
  }

  blankRow() {
    return { cells: Array.from({ length: this.columns }, () => ({ text: " ", pen: this.plain, wide: 1 })), dirty: true };
  }

  blankRows(count) {
    return Array.from({ length: count }, () => this.blankRow());
  }

  blank() {
    // What is erased has the colour of the paper that is set.
    const pen = this.pen.bg === null ? this.plain : Object.freeze({ ...this.plain, bg: this.pen.bg });
    return { text: " ", pen, wide: 1 };
  }

  write(bytes) {
    for (const sign of this.decoder.decode(bytes, { stream: true })) this.take(sign);
  }

  take(sign) {
    const code = sign.codePointAt(0);
    if (code === 0x18 || code === 0x1a) {
      this.state = "ground";
    } else if (this.state === "string") {
      this.stringLength += 1;
      if (code === 0x1b) this.state = "string-escape";
      else if (code === 0x07 || this.stringLength > TerminalScreen.LONGEST_STRING) this.state = "ground";
    } else if (this.state === "string-escape") {
      this.state = code === 0x5c ? "ground" : "string";
    } else if (code === 0x1b) {
      this.state = "escape";
    } else if (code < 0x20) {
      this.control(code);
    } else if (code >= 0x7f && code < 0xa0) {
      // Controls of eight bits are nobody's any more.
    } else if (this.state === "ground") {
      this.print(sign, code);
    } else if (this.state === "escape") {
      this.escape(sign);
    } else if (this.state === "charset") {
      if (this.designated < 2) this.charsets[this.designated] = sign;
      this.state = "ground";
    } else if (this.state === "skip") {
      this.state = "ground";
    } else {
      this.parameter(sign, code);
    }
  }

  control(code) {
    switch (code) {
      case 0x08:
        this.wrapNext = false;
        if (this.x > 0) this.x -= 1;
        break;
      case 0x09:
        this.x = Math.min(this.columns - 1, (Math.floor(this.x / 8) + 1) * 8);
        break;
      case 0x0a: case 0x0b: case 0x0c:
        this.say("\n");
        this.lineFeed();
        break;
      case 0x0d:
        this.x = 0;
        this.wrapNext = false;
        break;
      case 0x0e: this.charset = 1; break;
      case 0x0f: this.charset = 0; break;
    }
  }

  escape(sign) {
    this.state = "ground";
    switch (sign) {
      case "[":
        this.state = "sequence";
        this.parameters = [0];
        this.details = new Set();
        this.isEmpty = true;
        this.mark = "";
        break;
      case "]": case "P": case "X": case "^": case "_":
        this.state = "string";
        this.stringLength = 0;
        break;
      case "(": case ")": case "*": case "+":
        this.state = "charset";
        this.designated = "()*+".indexOf(sign);
        break;
      case "#": case "%": case " ": this.state = "skip"; break;
      case "7": this.save(); break;
      case "8": this.restore(); break;
      case "D": this.lineFeed(); break;
      case "E": this.x = 0; this.lineFeed(); break;
      case "M": this.reverseFeed(); break;
      case "c": this.reset(); break;
      case "=": this.modes.numbers = true; break;
      case ">": this.modes.numbers = false; break;
    }
  }

  parameter(sign, code) {
    if (code >= 0x30 && code <= 0x39) {
      this.isEmpty = false;
      const last = this.parameters.length - 1;
      this.parameters[last] = Math.min(65535, this.parameters[last] * 10 + code - 0x30);
    } else if (sign === ";" || sign === ":") {
      this.isEmpty = false;
      if (this.parameters.length < TerminalScreen.MOST_PARAMETERS) {
        // What follows a colon says more of the parameter before it, and is none of its own.
        if (sign === ":") this.details.add(this.parameters.length);
        this.parameters.push(0);
      }
    } else if (code >= 0x40 && code <= 0x7e) {
      this.state = "ground";
      this.sequence(sign);
    } else if (this.mark.length < 2) {
      this.mark += sign;
    } else {
      this.state = "ground";
    }
  }

  sequence(sign) {
    if (this.mark === "?") {
      if (sign === "h" || sign === "l") for (const mode of this.parameters) this.privateMode(mode, sign === "h");
      return;
    }
    if (this.mark === "!" && sign === "p") {
      this.pen = this.plain;
      this.modes.insert = false;
      this.modes.origin = false;
      this.modes.cursor = true;
      this.top = 0;
      this.bottom = this.rows - 1;
      return;
    }
    if (this.mark !== "") return;
    const [first, second = 0] = this.parameters;
    const count = Math.max(1, first);
    switch (sign) {
      case "A": this.go(this.x, Math.max(this.y >= this.top ? this.top : 0, this.y - count)); break;
      case "B": case "e": this.go(this.x, Math.min(this.y <= this.bottom ? this.bottom : this.rows - 1, this.y + count)); break;
      case "C": case "a": this.go(this.x + count, this.y); break;
      case "D": this.go(this.x - count, this.y); break;
      case "E": this.go(0, this.y + count); break;
      case "F": this.go(0, this.y - count); break;
      case "G": case "`": this.go(count - 1, this.y); break;
      case "d": this.place(this.x, count - 1); break;
      case "H": case "f": this.place(Math.max(1, second) - 1, count - 1); break;
      case "I": this.go((Math.floor(this.x / 8) + count) * 8, this.y); break;
      case "Z": this.go((Math.ceil(this.x / 8) - count) * 8, this.y); break;
      case "J": this.eraseScreen(first); break;
      case "K": this.eraseLine(first); break;
      case "X": this.fill(this.y, this.x, this.x + count); break;
      case "@": this.shift(count); break;
      case "P": this.shift(-count); break;
      case "L": if (this.isWithin()) this.scroll(-count, this.y); break;
      case "M": if (this.isWithin()) this.scroll(count, this.y); break;
      case "S": this.scroll(count, this.top); break;
      case "T": this.scroll(-count, this.top); break;
      case "b":
        for (let left = Math.min(count, this.columns); left > 0; left--) this.print(this.last, this.last.codePointAt(0));
        break;
      case "r": this.region(first, second); break;
      case "s": this.save(); break;
      case "u": this.restore(); break;
      case "m": this.paint(); break;
      case "h": if (first === 4) this.modes.insert = true; break;
      case "l": if (first === 4) this.modes.insert = false; break;
      case "n":
        if (first === 5) this.reply("\x1b[0n");
        if (first === 6) this.reply(`\x1b[${this.y + 1};${this.x + 1}R`);
        break;
      case "c": if (first === 0) this.reply("\x1b[?1;2c"); break;
    }
  }

  privateMode(mode, on) {
    switch (mode) {
      case 1: this.modes.keypad = on; break;
      case 6: this.modes.origin = on; this.place(0, 0); break;
      case 7: this.modes.wrap = on; break;
      case 25: this.modes.cursor = on; break;
      case 47: case 1047: this.alternate(on); break;
      case 1048: if (on) this.save(); else this.restore(); break;
      case 1049:
        if (on) this.save();
        this.alternate(on);
        if (!on) this.restore();
        break;
      case 2004: this.modes.bracketed = on; break;
    }
  }

  alternate(on) {
    if (on === this.isAlternate) return;
    this.isAlternate = on;
    this.lines = on ? this.blankRows(this.rows) : this.main;
    this.top = 0;
    this.bottom = this.rows - 1;
    this.touch();
  }

  print(sign, code) {
    if (this.charsets[this.charset] === "0" && code >= 0x60 && code <= 0x7e) {
      sign = [...TerminalScreen.LINES][code - 0x60];
      code = sign.codePointAt(0);
    }
    const wide = TerminalScreen.width(sign, code);
    if (wide === 0) {
      this.combine(sign);
      return;
    }
    this.last = sign;
    if (this.wrapNext || this.x + wide > this.columns) {
      if (!this.modes.wrap) this.x = Math.max(0, this.columns - wide);
      else {
        this.x = 0;
        this.lineFeed();
      }
      this.wrapNext = false;
    }
    if (this.modes.insert) this.shift(wide);
    const row = this.lines[this.y];
    this.part(row, this.x);
    if (wide === 2) this.part(row, this.x + 1);
    row.cells[this.x] = { text: sign, pen: this.pen, wide };
    if (wide === 2 && this.x + 1 < this.columns) row.cells[this.x + 1] = { text: "", pen: this.pen, wide: 0 };
    row.dirty = true;
    this.say(sign);
    if (this.x + wide >= this.columns) {
      this.x = this.columns - 1;
      this.wrapNext = this.modes.wrap;
    } else {
      this.x += wide;
    }
  }

  // Half of a sign that takes two places is none.
  part(row, x) {
    const cell = row.cells[x];
    if (!cell) return;
    if (cell.wide === 0 && x > 0) row.cells[x - 1] = this.blank();
    if (cell.wide === 2 && x + 1 < this.columns) row.cells[x + 1] = this.blank();
  }

  // An accent belongs to the sign before it, and a sign has a few of them at most.
  combine(sign) {
    if (!/^\p{M}$/u.test(sign)) return;
    let x = this.wrapNext ? this.x : this.x - 1;
    const { cells } = this.lines[this.y];
    if (x > 0 && cells[x].wide === 0) x -= 1;
    if (x < 0 || cells[x].text.length >= 8) return;
    cells[x] = { ...cells[x], text: cells[x].text + sign };
    this.lines[this.y].dirty = true;
  }

  // Signs that steer the direction of a text take no place, and are not shown either.
  static width(sign, code) {
    if (code < 0x300) return 1;
    if (/^[\p{M}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]$/u.test(sign)) return 0;
    if (code < 0x1100) return 1;
    return /^\p{Emoji_Presentation}$/u.test(sign) || code <= 0x115f || (code >= 0x2e80 && code <= 0xa4cf && code !== 0x303f) ||
      (code >= 0xac00 && code <= 0xd7a3) || (code >= 0xf900 && code <= 0xfaff) || (code >= 0xfe30 && code <= 0xfe6f) ||
      (code >= 0xff00 && code <= 0xff60) || (code >= 0xffe0 && code <= 0xffe6) || (code >= 0x1f300 && code <= 0x1f64f) ||
      (code >= 0x1f900 && code <= 0x1f9ff) || (code >= 0x20000 && code <= 0x3fffd) ? 2 : 1;
  }

  // What is heard where it cannot be seen. A program that has the screen to itself moves too much to be read out.
  say(text) {
    if (this.isAlternate) return;
    this.said += text;
    if (this.said.length > 8000) this.said = this.said.slice(-4000);
  }

  lineFeed() {
    this.wrapNext = false;
    if (this.y === this.bottom) this.scroll(1, this.top);
    else if (this.y < this.rows - 1) this.y += 1;
  }

  reverseFeed() {
    this.wrapNext = false;
    if (this.y === this.top) this.scroll(-1, this.top);
    else if (this.y > 0) this.y -= 1;
  }

  // Moves the rows from `from` to the bottom of the region up, or down where it is negative.
  scroll(by, from) {
    const height = this.bottom - from + 1;
    const count = Math.min(Math.abs(by), height);
    for (let left = count; left > 0; left--) {
      const row = { cells: Array.from({ length: this.columns }, () => this.blank()), dirty: true };
      if (by > 0) {
        const [gone] = this.lines.splice(from, 1);
        this.lines.splice(this.bottom, 0, row);
        if (from === 0 && !this.isAlternate) this.keep(gone);
      } else {
        this.lines.splice(this.bottom, 1);
        this.lines.splice(from, 0, row);
      }
    }
    this.touch();
  }

  keep(row) {
    this.kept.push(row);
    if (this.kept.length > TerminalScreen.MOST_KEPT) this.kept.shift();
  }

  isWithin() {
    return this.y >= this.top && this.y <= this.bottom;
  }

  region(first, second) {
    const top = Math.max(1, first) - 1;
    const bottom = Math.min(this.rows, second || this.rows) - 1;
    if (top >= bottom) return;
    this.top = top;
    this.bottom = bottom;
    this.place(0, 0);
  }

  place(x, y) {
    const from = this.modes.origin ? this.top : 0;
    const to = this.modes.origin ? this.bottom : this.rows - 1;
    this.go(x, Math.min(to, from + y));
  }

  go(x, y) {
    this.wrapNext = false;
    this.x = Math.min(this.columns - 1, Math.max(0, x));
    this.y = Math.min(this.rows - 1, Math.max(0, y));
  }

  save() {
    this.saved = { x: this.x, y: this.y, pen: this.pen, charsets: [...this.charsets], charset: this.charset };
  }

  restore() {
    const saved = this.saved || { x: 0, y: 0, pen: this.plain, charsets: ["B", "B"], charset: 0 };
    this.go(saved.x, saved.y);
    this.pen = saved.pen;
    this.charsets = [...saved.charsets];
    this.charset = saved.charset;
  }

  fill(y, from, to) {
    const row = this.lines[y];
    const end = Math.min(to, this.columns);
    this.part(row, from);
    if (end > from) this.part(row, end - 1);
    for (let x = from; x < end; x++) row.cells[x] = this.blank();
    row.dirty = true;
  }

  eraseLine(how) {
    if (how === 0) this.fill(this.y, this.x, this.columns);
    else if (how === 1) this.fill(this.y, 0, this.x + 1);
    else if (how === 2) this.fill(this.y, 0, this.columns);
  }

  eraseScreen(how) {
    if (how === 3) {
      this.kept = [];
      this.touch();
      return;
    }
    if (how > 2) return;
    if (how < 2) this.eraseLine(how);
    const from = how === 0 ? this.y + 1 : 0;
    const to = how === 1 ? this.y : this.rows;
    for (let y = from; y < to; y++) this.fill(y, 0, this.columns);
  }

  // Makes room for signs at the cursor, or takes some away.
  shift(by) {
    const row = this.lines[this.y];
    const count = Math.min(Math.abs(by), this.columns - this.x);
    const blanks = Array.from({ length: count }, () => this.blank());
    this.part(row, this.x);
    if (by > 0) {
      row.cells.splice(this.columns - count, count);
      row.cells.splice(this.x, 0, ...blanks);
    } else {
      row.cells.splice(this.x, count);
      row.cells.push(...blanks);
    }
    row.dirty = true;
  }

  // A colour by its number, or by red, green and blue, in front of which there may be a colour space.
  colour(details) {
    if (details[0] === 5) return (details[1] || 0) & 255;
    if (details[0] !== 2) return null;
    const [red = 0, green = 0, blue = 0] = details.slice(details.length > 4 ? 2 : 1);
    return 0x1000000 + ((red & 255) << 16) + ((green & 255) << 8) + (blue & 255);
  }

  paint() {
    if (this.isEmpty) this.parameters = [0];
    const pen = { ...this.pen };
    const list = this.parameters;
    for (let at = 0; at < list.length; at++) {
      const code = list[at];
      const details = [];
      while (this.details.has(at + 1)) {
        at += 1;
        details.push(list[at]);
      }
      if (details.length > 0) {
        if (code === 4) pen.underline = details[0] !== 0;
        else if (code === 38) pen.fg = this.colour(details);
        else if (code === 48) pen.bg = this.colour(details);
      } else if (code === 0) Object.assign(pen, this.plain);
      else if (code === 1) pen.bold = true;
      else if (code === 2) pen.dim = true;
      else if (code === 3) pen.italic = true;
      else if (code === 4 || code === 21) pen.underline = true;
      else if (code === 7) pen.inverse = true;
      else if (code === 9) pen.strike = true;
      else if (code === 22) pen.bold = pen.dim = false;
      else if (code === 23) pen.italic = false;
      else if (code === 24) pen.underline = false;
      else if (code === 27) pen.inverse = false;
      else if (code === 29) pen.strike = false;
      else if (code >= 30 && code <= 37) pen.fg = code - 30;
      else if (code === 39) pen.fg = null;
      else if (code >= 40 && code <= 47) pen.bg = code - 40;
      else if (code === 49) pen.bg = null;
      else if (code >= 90 && code <= 97) pen.fg = code - 82;
      else if (code >= 100 && code <= 107) pen.bg = code - 92;
      else if (code === 38 || code === 48) {
        let colour = null;
        if (list[at + 1] === 5) {
          colour = (list[at + 2] || 0) & 255;
          at += 2;
        } else if (list[at + 1] === 2) {
          const [red = 0, green = 0, blue = 0] = list.slice(at + 2, at + 5);
          colour = 0x1000000 + ((red & 255) << 16) + ((green & 255) << 8) + (blue & 255);
          at += 4;
        }
        pen[code === 38 ? "fg" : "bg"] = colour;
      }
    }
    this.pen = Object.freeze(pen);
  }

  touch() {
    for (const row of this.lines) row.dirty = true;
  }

  resize(columns, rows) {
    if (columns === this.columns && rows === this.rows) return;
    const before = this.rows;
    this.columns = columns;
    this.rows = rows;
    this.main = this.fitted(this.main, !this.isAlternate);
    this.lines = this.isAlternate ? this.fitted(this.lines, false) : this.main;
    if (this.top !== 0 || this.bottom !== before - 1 || this.bottom >= rows) this.top = 0;
    this.bottom = rows - 1;
    this.go(this.x, this.y);
    this.touch();
  }

  // Rows that no longer fit go to those that are kept, from the top.
  fitted(lines, isShown) {
    const fresh = lines.map((row) => {
      const cells = row.cells.slice(0, this.columns);
      while (cells.length < this.columns) cells.push({ text: " ", pen: this.plain, wide: 1 });
      return { cells, dirty: true };
    });
    while (fresh.length > this.rows) {
      if (isShown && this.y < fresh.length - 1) {
        fresh.pop();
      } else {
        const gone = fresh.shift();
        if (isShown) {
          this.keep(gone);
          this.y -= 1;
        }
      }
    }
    while (fresh.length < this.rows) fresh.push(this.blankRow());
    return fresh;
  }
}

globalThis.TerminalScreen = TerminalScreen;
