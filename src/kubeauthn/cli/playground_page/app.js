// The playground: what is typed is judged by the command that serves this page, and shown.

import { keep, kept } from "./address.js";
import { jsonLine, yamlLine } from "./colours.js";
import { Completion } from "./completion.js";
import { byId, element, seen } from "./dom.js";
import { Editor } from "./editor.js";
import { commandLine, suite } from "./exporting.js";
import { showError, showFindings, showGiven, showVerdict, watchVerdict } from "./verdict.js";

const WAIT = 20; // milliseconds without a keystroke before it is judged

const page = { answer: null, timer: 0, asked: 0, shown: 0, claims: "" };
// One question at a time while somebody types: a large configuration takes longer than a keystroke.
const soon = () => {
  clearTimeout(page.timer);
  page.timer = setTimeout(() => (page.asked > page.shown ? soon() : judge()), WAIT);
};

// What is not an object is taken for a token, as it may stand in a header.
const isToken = (text) => !/^\s*(\{|$)/.test(text);
const bare = (text) => text.trim().replace(/^(authorization:\s*)?bearer\s+/i, "").replace(/\s+/g, "");
const byLine = (text) => text?.split("\n").map(seen).join("\n");
const givenLine = (text) => (isToken(given.text) ? [text] : jsonLine(text));
// What is changed is no example any more, and the example can be chosen again.
const edited = () => {
  byId("example").value = "";
  soon();
};
const configuration = new Editor(byId("configuration-editor"), yamlLine, edited);
const given = new Editor(byId("given-editor"), givenLine, edited);

async function ask(asked) {
  const headers = { "Content-Type": "application/json" };
  try {
    return await (await fetch("/judge", { method: "POST", headers, body: JSON.stringify(asked) })).json();
  } catch {
    return { error: "the playground's command does not answer: is it still running?" };
  }
}

async function judge(how = {}) {
  clearTimeout(page.timer);
  const token = isToken(given.text);
  const asked = { configuration: configuration.text, keys: byId("keys").value, kubernetes: byId("release").value };
  asked[token ? "token" : "claims"] = token ? bare(given.text) : given.text;
  const number = (page.asked += 1);
  const answer = await ask(asked);
  if (number < page.shown) return; // a later one has been shown already
  page.shown = number;
  page.answer = answer.error ? null : answer;
  page.claims = token ? "" : asked.claims;
  if (answer.error) {
    showError(answer.error);
    return;
  }
  show(answer);
  const state = { configuration: asked.configuration, release: asked.kubernetes };
  // Only what was read as claims: half a token may be anything else.
  if (!token && answer.given) state.claims = asked.claims;
  await keep(state, how);
}

function show(answer) {
  const marks = new Map();
  for (const found of answer.findings) {
    if (!found.line || found.level === "note") continue;
    const before = marks.get(found.line);
    const told = [before?.told, ...[found.text, found.hint].map(byLine)].filter(Boolean).join("\n");
    marks.set(found.line, { level: before?.level === "error" ? "error" : found.level, told });
  }
  configuration.mark(marks);
  const goTo = ({ line, column }) => configuration.goTo(line || 1, column || 1);
  showFindings(answer.findings, goTo);
  showGiven(answer);
  showVerdict(answer, goTo);
}

function fill(state) {
  configuration.text = state.configuration ?? "";
  given.text = state.claims ?? "";
  const release = byId("release");
  if ([...release.options].some((option) => option.value === state.release)) release.value = state.release;
}

async function showExport(label, text) {
  await judge(); // what is typed and not judged yet belongs to it
  byId("export-label").textContent = label;
  byId("export-text").value = text();
  byId("export").hidden = false;
  byId("copied").textContent = "";
  byId("export-text").focus();
  byId("export-text").select();
}

async function copy(text, where) {
  try {
    await navigator.clipboard.writeText(text);
    where.textContent = "copied";
  } catch {
    where.textContent = "copy it by hand";
  }
}

function listen(setting) {
  const on = (id, event, act) => byId(id).addEventListener(event, act);
  on("example", "change", (event) => {
    const example = setting.examples.find((one) => one.name === event.target.value);
    if (!example) return;
    fill(example);
    judge({ anew: true });
  });
  on("release", "change", () => judge());
  on("keys", "input", soon);
  on("export-suite", "click", () => showExport("suite.yaml, beside authn.yaml", () => suite(page.answer, page.claims)));
  on("export-command", "click", () => showExport("For a shell", () => commandLine(configuration.text, page.answer, page.claims)));
  on("export-address", "click", () => showExport("This state, without any token", () => location.href));
  on("export-copy", "click", () => copy(byId("export-text").value, byId("copied")));
  addEventListener("hashchange", async () => {
    const state = await kept();
    if (!state || (state.configuration === configuration.text && state.claims === given.text)) return;
    byId("example").value = "";
    fill(state);
    judge();
  });
}

async function begin() {
  const read = async (path) => (await fetch(path)).json();
  const [setting, schema] = await Promise.all([read("/setting.json"), read("/schema.json")]);
  byId("example").append(element("option", { value: "" }, "choose …"),
    ...setting.examples.map((example) => element("option", { value: example.name }, example.title)));
  byId("release").append(...setting.releases.map((release) => element("option", { value: release }, release)));
  byId("release").value = setting.newest;
  new Completion(configuration, byId("completion"), schema);
  const first = setting.examples[0];
  const own = setting.start.configuration === undefined ? first : { configuration: setting.start.configuration };
  const shared = await kept();
  fill(shared ?? { ...own, ...setting.start });
  if (!shared && Object.keys(setting.start).length === 0) byId("example").value = first.name;
  listen(setting);
  watchVerdict();
  await judge();
}

begin().catch(() => showError("the playground's command does not answer: is it still running?"));
