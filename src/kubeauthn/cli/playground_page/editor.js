// A textarea over a coloured copy of its text: the browser's own editing, and colours.

import { element } from "./dom.js";

export class Editor {
  constructor(root, colourLine, changed) {
    this.area = root.querySelector("textarea");
    this.sheet = root.querySelector("pre");
    this.copy = root.querySelector("code");
    this.numbers = root.querySelector(".gutter div");
    this.colourLine = colourLine;
    this.marks = new Map();
    this.rows = [];
    this.area.addEventListener("input", () => {
      this.moveMarks();
      this.draw();
      changed();
    });
    this.area.addEventListener("scroll", () => this.follow());
    new ResizeObserver(() => this.follow()).observe(this.area);
  }

  get text() {
    return this.area.value;
  }

  set text(value) {
    this.area.value = value;
    this.area.scrollTop = 0;
    this.area.scrollLeft = 0;
    this.marks = new Map();
    this.rows = [];
    this.draw();
  }

  // `marks`: by line number, a level and what is said there.
  mark(marks) {
    this.marks = marks;
    this.draw();
  }

  // Until the text is judged anew, marks go along with their lines: those below the cursor move.
  moveMarks() {
    const count = (text) => text.split("\n").length;
    const more = count(this.text) - this.rows.length;
    if (more === 0 || this.marks.size === 0) return;
    const cursor = count(this.text.slice(0, this.area.selectionStart)) - Math.max(more, 0);
    this.marks = new Map([...this.marks].map(([line, mark]) => [line > cursor ? line + more : line, mark]));
  }

  // Lines that are as they were keep their elements: a keystroke changes one or two.
  draw() {
    const rows = this.text.split("\n").map((text, index) => ({ text, level: this.marks.get(index + 1)?.level ?? "" }));
    const same = (one, other) => one && other && one.text === other.text && one.level === other.level;
    const old = this.rows;
    let head = 0;
    while (head < rows.length && same(rows[head], old[head])) head += 1;
    let tail = 0;
    const most = Math.min(rows.length, old.length) - head;
    while (tail < most && same(rows[rows.length - 1 - tail], old[old.length - 1 - tail])) tail += 1;
    rows.forEach((row, index) => {
      const kept = index < head ? old[index] : index >= rows.length - tail ? old[index - rows.length + old.length] : null;
      row.line = kept?.line ?? element("span", { class: `line ${row.level}`.trim() }, ...this.colourLine(row.text));
    });
    const after = tail ? rows[rows.length - tail].line : null;
    for (const row of old.slice(head, old.length - tail)) row.line.remove();
    for (const row of rows.slice(head, rows.length - tail)) this.copy.insertBefore(row.line, after);
    if (old.length === 0) this.copy.replaceChildren(...rows.map((row) => row.line));
    this.rows = rows;
    this.drawNumbers();
    this.follow();
  }

  drawNumbers() {
    if (!this.numbers) return;
    while (this.numbers.children.length > this.rows.length) this.numbers.lastChild.remove();
    while (this.numbers.children.length < this.rows.length) {
      this.numbers.append(element("span", {}, String(this.numbers.children.length + 1)));
    }
    for (const marked of this.numbers.querySelectorAll("[class]")) {
      marked.removeAttribute("class");
      marked.removeAttribute("title");
    }
    for (const [line, { level, told }] of this.marks) {
      this.numbers.children[line - 1]?.setAttribute("class", level);
      this.numbers.children[line - 1]?.setAttribute("title", told);
    }
  }

  // As wide as the textarea without its scrollbar, so that lines wrap alike; moved, not scrolled, so that both end alike.
  follow() {
    this.sheet.style.width = `${this.area.clientWidth}px`;
    this.copy.style.transform = `translate(${-this.area.scrollLeft}px, ${-this.area.scrollTop}px)`;
    if (this.numbers) this.numbers.style.transform = `translateY(${-this.area.scrollTop}px)`;
  }

  get lineHeight() {
    return parseFloat(getComputedStyle(this.area).lineHeight);
  }

  goTo(line, column) {
    const lines = this.text.split("\n");
    const start = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
    const at = start + Math.min(Math.max(column - 1, 0), (lines[line - 1] ?? "").length);
    this.area.focus();
    this.area.setSelectionRange(at, at);
    const top = (line - 1) * this.lineHeight;
    if (top < this.area.scrollTop || top > this.area.scrollTop + this.area.clientHeight - 3 * this.lineHeight) {
      this.area.scrollTop = Math.max(0, top - 3 * this.lineHeight);
    }
    this.follow();
  }
}
