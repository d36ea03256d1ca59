// Elements made without markup in texts: what a token says is text, whatever it looks like.

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== null) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

// Characters that are not seen, or that turn or hide what stands beside them, as a terminal gets them: by their numbers.
const ODD = /(?! )[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]/gu;
const SHORT = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };
const numbered = (character) => {
  if (character in SHORT) return SHORT[character];
  const code = character.codePointAt(0);
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
  return code > 0xffff ? `\\U${code.toString(16).padStart(8, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
};

export const seen = (text) => text.replace(ODD, numbered);
// Of several lines each is one; what quotes an expression, with a mark below it, is of characters of one width.
export const seenLines = (text) => text.replaceAll("\t", "  ").trimEnd().split("\n").map((line) =>
  element("span", { class: line.startsWith(" | ") ? "row quoted" : "row" }, seen(line)));

export const byId = (id) => document.getElementById(id);
