// The answer, shown: what was given, each fault, each step, the user.

import { byId, element, seen, seenLines } from "./dom.js";

const MARKS = { ok: "✓", refused: "✗", skipped: "–" };
const json = (value) => JSON.stringify(value);
const code = (text) => element("code", {}, seen(text));

export function typed(value) {
  const [[kind, content]] = Object.entries(value);
  if (kind === "list") return `[${content.map(typed).join(", ")}]`;
  if (kind === "map") return `{${content.map(([key, entry]) => `${typed(key)}: ${typed(entry)}`).join(", ")}}`;
  if (kind === "string") return json(content);
  if (kind === "optional") return content.length ? `optional.of(${typed(content[0])})` : "optional.none()";
  return kind === "null" ? "null" : typeof content === "object" ? json(content) : String(content);
}

export function showFindings(findings, goTo) {
  const rows = findings.map((found) =>
    element("li", {}, element("button", { type: "button", onclick: () => goTo(found) },
      element("span", {}, element("span", { class: `level ${found.level}` }, found.level),
        found.line ? element("span", { class: "place" }, `line ${found.line}`) : null),
      element("span", {}, ...seenLines(found.text), found.hint ? element("span", { class: "hint" }, ...seenLines(found.hint)) : null))));
  const nothing = element("li", { class: "note" }, "none");
  const focused = [...byId("findings").children].findIndex((row) => row.contains(document.activeElement));
  byId("findings").replaceChildren(...(rows.length ? rows : [nothing]));
  byId("findings").children[focused]?.querySelector("button")?.focus();
  byId("findings-count").textContent = rows.length ? `(${rows.length})` : "";
  // Said to those who do not see the marks: that the text has faults, and where they are listed.
  byId("configuration").setAttribute("aria-invalid", String(findings.some((found) => found.level === "error")));
}

// A token in full; of claims, which stand above, only the times in words.
export function showGiven({ given, problem }) {
  if (!given) {
    const told = problem ?? "Nothing is given yet.";
    byId("decoded").replaceChildren(element("p", { class: problem ? "refused" : "note" }, seen(told)));
    return;
  }
  const words = new Map(given.times.map((time) => [time.name, time.words]));
  const rows = Object.entries(given.claims).filter(([name]) => given.header || words.has(name)).map(([name, value]) =>
    element("tr", {}, element("th", { scope: "row" }, seen(name)), element("td", {}, code(json(value)),
      words.has(name) ? element("span", { class: "words" }, ` ${words.get(name)}`) : null)));
  const header = given.header ? element("p", { class: "note" }, "header ", code(json(given.header))) : "";
  const table = rows.length ? element("table", {}, element("tbody", {}, ...rows)) : "";
  byId("decoded").replaceChildren(header, table);
}

export function showError(text) {
  verdictLine("refused", text);
  for (const id of ["notes", "user", "steps"]) byId(id).replaceChildren();
}

// The outcome stands out, its reason follows. Said again only when it changed: a screen reader reads it out.
function verdictLine(kind, outcome, reason = "") {
  const mark = MARKS[kind] ? `${MARKS[kind]} ` : "";
  for (const line of [byId("verdict"), byId("glance")]) {
    line.className = kind;
    const told = element("span", {}, element("strong", {}, seen(mark + outcome)), seen(reason.trim().split("\n").map((line) => line.trim()).join(" ")));
    if (line.textContent !== told.textContent) line.replaceChildren(told);
  }
}

// While the verdict is below the screen, as on a phone, it is also seen at its lower edge.
export function watchVerdict() {
  const seen = ([entry]) => (byId("glance").hidden = entry.isIntersecting || entry.boundingClientRect.top < 0);
  new IntersectionObserver(seen, { threshold: 0.5 }).observe(byId("verdict"));
}

export function showVerdict(answer, goTo) {
  const { verdict } = answer;
  if (!verdict) {
    const faulty = answer.findings.some((found) => found.level === "error");
    if (faulty) showError("The configuration has faults: no token is judged by it.");
    else if (answer.problem) showError(answer.problem);
    else {
      showError("");
      verdictLine("", "Give claims or a token to see what becomes of it.");
    }
    return;
  }
  if (verdict.verdict === "authenticated") verdictLine("ok", `authenticated as ${verdict.user.username}`);
  else verdictLine("refused", `${verdict.verdict}: `, verdict.reason);
  byId("notes").replaceChildren(...answer.notes.map((note) => element("p", {}, seen(note))));
  showUser(verdict.user);
  byId("steps").replaceChildren(...verdict.steps.map((one) => step(one, goTo)));
}

function showUser(user) {
  const rows = user ? [["username", user.username], ["uid", user.uid], ["groups", json(user.groups)],
    ...Object.entries(user.extra).map(([key, values]) => [`extra ${key}`, json(values)])] : [];
  byId("user").replaceChildren(...rows.filter(([, value]) => value !== "").flatMap(([name, value]) =>
    [element("dt", {}, seen(name)), element("dd", {}, code(value))]));
}

// What refused leads to its line: that is where it can be mended.
function placeOf(one, goTo) {
  if (!one.rule || (one.number < 8 && one.outcome !== "refused")) return null;
  if (one.outcome !== "refused" || !one.line) return element("span", { class: "place" }, one.rule);
  return element("button", { type: "button", class: "place", onclick: () => goTo(one) }, `${one.rule}, line ${one.line}`);
}

function step(one, goTo) {
  const told = [];
  if (one.expression) told.push(element("p", {}, element("code", {}, ...seenLines(one.expression))));
  if (one.cel) {
    told.push(element("p", {}, "= ", code(typed(one.cel.value)), element("span", { class: "kind" }, ` ${one.cel.type.replaceAll("google.protobuf.Any", "any")}, cost ${one.cel.cost}`)));
  }
  const result = one.cel && one.number === 9 && one.outcome === "ok"; // then the value has said it
  if (!result) told.unshift(element("p", {}, ...seenLines(one.detail)));
  const values = Object.entries({ ...one.inputs, ...(one.saw ?? {}) });
  if (values.length) told.push(element("p", { class: "saw" }, ...values.flatMap(([name, value], index) =>
    [index ? ", " : "", `${seen(name)} `, one.absent.includes(name) ? "absent" : code(json(value).replace(/(:\d\d)\.\d+( \+0000 UTC")$/, "$1$2"))])));
  if (one.hint) told.push(element("p", { class: "hint" }, ...seenLines(one.hint)));
  return element("li", { class: one.outcome === "refused" ? "no" : null },
    element("span", { class: `outcome ${one.outcome}` }, `${MARKS[one.outcome] ?? ""} ${one.outcome}`),
    element("span", { class: "name" }, seen(`${one.number}. ${one.name}`), placeOf(one, goTo)),
    element("div", { class: "told" }, ...told));
}
