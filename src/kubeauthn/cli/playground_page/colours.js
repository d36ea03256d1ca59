// Colours for YAML and JSON: good enough to read by, and never wrong about the text itself.

import { element } from "./dom.js";

const span = (kind, text) => (kind ? element("span", { class: `t-${kind}` }, text) : text);

function valueKind(text) {
  const trimmed = text.trim();
  if (/^["']/.test(trimmed)) return "text";
  if (/^(true|false|null|-?\d+(\.\d+)?([eE][+-]?\d+)?)$/.test(trimmed)) return "number";
  return "";
}

// Where a word may begin. A quotation mark inside one is a letter of it: it's.
const opens = (text, at) => at === 0 || /[\s,:[{]/.test(text[at - 1]);

// A comment begins with a # at the start or after a space, outside quotes.
function commentAt(text) {
  let quote = "";
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (quote) {
      if (character === quote) quote = "";
    } else if ((character === '"' || character === "'") && opens(text, at)) quote = character;
    else if (character === "#" && (at === 0 || /\s/.test(text[at - 1]))) return at;
  }
  return text.length;
}

// Below, a text that has no end yet goes to the end of its line: each line is read once, however many marks are in it.

// Between braces and brackets: {claim: sub, prefix: "dex:"}
function flow(text) {
  const parts = [];
  const pattern =
    /((?<=^|[\s,:[{])(?:"(?:[^"\\]|\\(?:[^]|$))*(?:"|$)|'(?:[^']|'')*'))(?=\s*(:(?=\s))?)|(?<![\w./-])(?:([\w./-]+)(?=:(?:\s|$))|(true|false|null|-?\d+(?:\.\d+)?)(?=\s*(?:[,\]}]|$)))/g;
  let last = 0;
  for (const found of text.matchAll(pattern)) {
    if (!opens(text, found.index)) continue;
    const kind = found[1] ? (found[2] ? "key" : "text") : found[3] ? "key" : "number";
    parts.push(text.slice(last, found.index), span(kind, found[0]));
    last = found.index + found[0].length;
  }
  parts.push(text.slice(last));
  return parts;
}

const value = (text) => (/^\s*[{[]/.test(text) ? flow(text) : [span(valueKind(text), text)]);

export function yamlLine(text) {
  const end = commentAt(text);
  const body = text.slice(0, end);
  const [, before, rest] = /^(\s*(?:- )*)(.*)$/s.exec(body);
  const parts = [before];
  const key = /^("[^"]*"|[^\s:#"'[{][^:#]*)(:)(?=\s|$)/.exec(rest);
  if (key) parts.push(span("key", key[1]), key[2], ...value(rest.slice(key[0].length)));
  else parts.push(...value(rest));
  if (end < text.length) parts.push(span("comment", text.slice(end)));
  return parts;
}

export function jsonLine(text) {
  const parts = [];
  const pattern = /("(?:[^"\\]|\\(?:[^]|$))*(?:"|$))(\s*:)?|(-?\d[\d.eE+-]*|\btrue\b|\bfalse\b|\bnull\b)/g;
  let last = 0;
  for (const found of text.matchAll(pattern)) {
    parts.push(text.slice(last, found.index));
    if (found[1]) parts.push(span(found[2] ? "key" : "text", found[1]), found[2] ?? "");
    else parts.push(span("number", found[3]));
    last = found.index + found[0].length;
  }
  parts.push(text.slice(last));
  return parts;
}
