// Which fields fit where the cursor is: the path is read from the indentation, the fields from the schema.
// Block style, as people write it; inside [ ] and { } nothing is offered.

// A line as indentation, dashes, key: `column` is where the key begins, `dash` where the last dash is, or -1.
function outline(text) {
  const [, lead, rest] = /^((?: |- +|-$)*)(.*)$/.exec(text);
  const key = /^("?)([A-Za-z]\w*)\1:(?:\s|$)/.exec(rest)?.[2];
  return { column: lead.length, dash: lead.lastIndexOf("-"), key, empty: rest.trim() === "" && !lead.includes("-") };
}

const counts = (text) => !/^\s*(#.*)?$/.test(text);

// The keys that hold the line, outermost first, each with whether the way goes through an item of its list;
// and the keys that stand beside the line already.
export function around(lines, at, cursorLine) {
  const here = outline(cursorLine);
  let { column, dash } = here;
  let inItem = dash >= 0; // then the mapping begins on this very line
  let innermost = true;
  const path = [];
  const beside = new Set();
  for (let index = at - 1; index >= 0; index -= 1) {
    if (!counts(lines[index])) continue;
    const line = outline(lines[index]);
    const isParent = inItem ? line.column <= dash && line.dash < dash : line.column < column;
    if (isParent) {
      if (!line.key) break; // a text, or something that is not read here
      path.unshift({ key: line.key, item: inItem });
      ({ column, dash } = line);
      inItem = dash >= 0;
      innermost = false;
    } else if (!inItem && line.column === column) {
      if (innermost && line.key) beside.add(line.key);
      if (line.dash >= 0) {
        inItem = true;
        dash = line.dash;
      }
    } else if (!inItem && line.dash >= 0 && line.dash < column && line.column > column) break;
  }
  for (let index = at + 1; index < lines.length; index += 1) {
    if (!counts(lines[index])) continue;
    const line = outline(lines[index]);
    if (line.column < here.column || (line.dash >= 0 && line.dash < here.column)) break;
    if (line.column === here.column && line.key) beside.add(line.key);
  }
  return { path, beside, column: here.column, dash: here.dash };
}

function resolved(schema, node) {
  if (!node) return null;
  if (node.$ref) return resolved(schema, schema.$defs[node.$ref.split("/").pop()]);
  const choices = (node.anyOf ?? []).map((choice) => resolved(schema, choice));
  return choices.find((choice) => choice?.properties || choice?.items) ?? node;
}

const isList = (node) => Boolean(node?.items);

function descend(schema, path) {
  let place = schema;
  for (const { key, item } of path) {
    place = resolved(schema, Object.hasOwn(place?.properties ?? {}, key) ? place.properties[key] : null);
    if (item !== isList(place) && item) return null;
    if (item) place = resolved(schema, place.items);
  }
  return place;
}

function values(schema, path, name, typed) {
  const field = descend(schema, path)?.properties?.[name];
  const node = resolved(schema, field);
  const choices = node?.enum ?? (node?.const ? [node.const] : [].concat(node?.type ?? []).includes("boolean") ? ["true", "false"] : []);
  return choices.filter((choice) => choice && choice !== typed && choice.startsWith(typed))
    .map((choice) => ({ name: choice, before: "", after: "" }));
}

// What follows the name: an object goes on in the next line, a list of objects with a dash.
function after(schema, node, indent) {
  if (node?.properties) return `:\n${indent}  `;
  return isList(node) && resolved(schema, node.items)?.properties ? `:\n${indent}- ` : ": ";
}

export function fitting(schema, text, cursor) {
  const lines = text.split("\n");
  const at = text.slice(0, cursor).split("\n").length - 1;
  const current = text.slice(0, cursor).split("\n").pop();
  const rest = lines[at].slice(current.length);
  const value = /^(?: |- +)*([A-Za-z]\w*): +([\w./]*)$/.exec(current);
  if (value) {
    const { path } = around(lines, at, current);
    return { typed: value[2], fields: values(schema, path, value[1], value[2]) };
  }
  const name = /^((?: |- +)*)([A-Za-z]*)$/.exec(current);
  if (!name || rest.trim() !== "") return null;
  const { path, beside, column, dash } = around(lines, at, current);
  const place = descend(schema, path);
  const item = isList(place); // a new item: its fields, after a dash
  const fields = Object.entries((item ? resolved(schema, place.items) : place)?.properties ?? {})
    .filter(([field]) => field.startsWith(name[2]) && field !== name[2] && (item || !beside.has(field)))
    .map(([field, node]) => {
      const shape = resolved(schema, node);
      const before = item ? "- " : "";
      const indent = " ".repeat(column + before.length);
      return { name: field, before, after: after(schema, shape, indent), about: node.description ?? shape?.description };
    });
  return dash < 0 && path.length === 0 && column > 0 ? null : { typed: name[2], fields };
}
