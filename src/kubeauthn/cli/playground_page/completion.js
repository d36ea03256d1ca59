// The list of what fits where the cursor is, worked by keys: arrows, Enter or Tab, Escape.

import { element } from "./dom.js";
import { fitting } from "./fitting.js";

const MOST = 20;

export class Completion {
  constructor(editor, list, schema) {
    this.editor = editor;
    this.list = list;
    this.schema = schema;
    this.chosen = 0;
    this.fields = [];
    const { area } = editor;
    area.setAttribute("aria-autocomplete", "list");
    area.setAttribute("aria-controls", list.id);
    area.addEventListener("keydown", (event) => this.key(event));
    area.addEventListener("input", (event) => {
      if (event.inputType === "insertText" && /^[A-Za-z]$/.test(event.data ?? "")) this.open();
      else this.close();
    });
    for (const event of ["blur", "click"]) area.addEventListener(event, () => this.close());
    // An answer that arrives may move the text: the list goes with its line.
    area.addEventListener("scroll", () => this.list.hidden || this.place());
  }

  key(event) {
    if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      this.open();
    } else if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    } else if (!this.list.hidden) {
      this.keyInList(event);
    } else if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.newLine();
    }
  }

  keyInList(event) {
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in steps) {
      event.preventDefault();
      this.choose((this.chosen + steps[event.key] + this.fields.length) % this.fields.length);
    } else if (event.key === "Enter" || (event.key === "Tab" && !event.shiftKey)) {
      event.preventDefault();
      this.take(this.fields[this.chosen]);
    } else if (event.key === "Escape") {
      event.preventDefault();
      this.close();
    } else if (event.key.startsWith("Arrow") || event.key === "Home" || event.key === "End") {
      this.close();
    }
  }

  newLine() {
    const { area } = this.editor;
    const line = area.value.slice(0, area.selectionStart).split("\n").pop();
    const indent = line.match(/^ *(- +)*/)[0].replace(/-/g, " ");
    this.insert(`\n${indent}${/:\s*$/.test(line) ? "  " : ""}`);
  }

  // By the browser, so that undo knows of it.
  insert(text) {
    this.editor.area.focus();
    document.execCommand("insertText", false, text);
  }

  open() {
    const { area } = this.editor;
    const found = fitting(this.schema, area.value, area.selectionStart);
    if (!found || found.fields.length === 0) {
      this.close();
      return;
    }
    this.typed = found.typed;
    this.fields = found.fields.slice(0, MOST);
    this.list.replaceChildren(...this.fields.map((field, index) => {
      const take = (event) => {
        event.preventDefault(); // the editor keeps the focus
        this.take(field);
      };
      const about = field.about ? element("small", {}, field.about) : null;
      return element("li", { role: "option", id: `completion-${index}`, onmousedown: take }, field.name, about);
    }));
    this.list.hidden = false;
    this.choose(0);
    this.place();
  }

  // Below the line, or above it where there is more room.
  place() {
    const { area, lineHeight } = this.editor;
    const lines = area.value.slice(0, area.selectionStart).split("\n");
    const box = this.list.parentElement;
    const padding = parseFloat(getComputedStyle(area).paddingTop);
    const top = (lines.length - 1) * lineHeight + padding - area.scrollTop;
    if (top < 0 || top > box.clientHeight) {
      this.close();
      return;
    }
    const below = box.clientHeight - top - lineHeight;
    const style = this.list.style;
    style.maxHeight = `${Math.max(below, top) - 8}px`;
    style.top = below >= top ? `${top + lineHeight}px` : "auto";
    style.bottom = below >= top ? "auto" : `${box.clientHeight - top}px`;
    const start = area.parentElement.offsetLeft + parseFloat(getComputedStyle(area).paddingLeft) - area.scrollLeft;
    style.left = `calc(${start}px + ${lines[lines.length - 1].length - this.typed.length}ch)`;
    const over = this.list.offsetLeft + this.list.offsetWidth - box.clientWidth + 8;
    if (over > 0) style.left = `${Math.max(0, this.list.offsetLeft - over)}px`;
  }

  choose(index) {
    this.chosen = index;
    [...this.list.children].forEach((item, number) => item.setAttribute("aria-selected", String(number === index)));
    this.list.children[index]?.scrollIntoView({ block: "nearest" });
    this.editor.area.setAttribute("aria-activedescendant", `completion-${index}`);
  }

  take(field) {
    const { area } = this.editor;
    area.setSelectionRange(area.selectionStart - this.typed.length, area.selectionEnd);
    this.insert(field.before + field.name + field.after);
    this.close();
  }

  close() {
    this.list.hidden = true;
    this.editor.area.removeAttribute("aria-activedescendant");
  }
}
