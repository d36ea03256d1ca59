// What is on the page, as a file of cases and as commands. A token never leaves through here: its claims do.

// JSON that is YAML too: some characters end a line there, or may not stand in it at all.
const escape = (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
const json = (value, indent) => JSON.stringify(value, null, indent).replace(/[\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff]/g, escape);

// As it was written if it can stand in a file as it is, else written anew.
function claimsText(answer, written) {
  const plain = written.trim() !== "" && !/[^\n\x20-\x7e\xa1-\u2027\u202a-\ud7ff\ue000-\ufdcf]/.test(written);
  return plain ? written.trim() : json(answer.given.claims, 2);
}

// Of claims the signature is taken as good, and what is missing as right. Why they cannot stand for this token, or "".
function notByClaims(answer) {
  if (!answer.given?.header) return "";
  const missing = ["iss", "aud", "exp"].filter((name) => !Object.hasOwn(answer.given.claims, name));
  if (missing.length) return `a case has claims, and takes ${missing.join(", ")} to be right where missing: it cannot say what this token is`;
  const form = answer.verdict?.steps.some((step) => step.outcome === "refused" && [1, 3].includes(step.number));
  return form ? "a case has claims, and takes them as verified: it cannot say that this token's signature is refused" : "";
}

function expected(verdict) {
  if (verdict.verdict === "not mine") return ["    notMine: true"];
  if (!verdict.user) {
    const failed = verdict.steps.find((step) => step.outcome === "refused");
    const named = failed?.number >= 8 && failed.rule; // before that a step has a place, and no rule
    return [`    refused: ${named ? json(named) : "true"}`];
  }
  const { username, uid, groups } = verdict.user;
  const lines = [`    username: ${json(username)}`, `    groups: ${json(groups)}`];
  if (uid) lines.push(`    uid: ${json(uid)}`);
  const extra = Object.entries(verdict.user.extra).filter(([key]) => !key.endsWith("/credential-id"));
  if (extra.length) lines.push(`    extra: ${json(Object.fromEntries(extra))}`);
  return lines;
}

export function suite(answer, written) {
  if (!answer?.verdict) return "# give claims, and a configuration without faults, first\n";
  const reason = notByClaims(answer);
  if (reason) return `# ${reason}\n`;
  return [
    `# kubeauthn test suite.yaml --kubernetes ${answer.kubernetes}`,
    "configuration: authn.yaml",
    `now: ${new Date(answer.now * 1000).toISOString().replace(/\.\d+Z$/, "Z")}`,
    "cases:",
    `- name: ${json(answer.verdict.user?.username ?? answer.verdict.verdict)}`,
    "  claims: |-",
    ...claimsText(answer, written).split("\n").map((line) => `    ${line}`),
    "  expect:",
    ...expected(answer.verdict),
    "",
  ].join("\n");
}

// The word that ends the document must not be a line of it: what follows would be commands.
function document_(name, text) {
  const lines = text.replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, "\ufffd").replace(/\n*$/, "").split("\n");
  let end = "END";
  while (lines.includes(end)) end += "_";
  return `cat > ${name} <<'${end}'\n${lines.join("\n")}\n${end}\n`;
}

export function commandLine(configuration, answer, written) {
  const version = answer ? ` --kubernetes ${answer.kubernetes}` : "";
  const check = `${document_("authn.yaml", configuration)}kubeauthn check authn.yaml${version}\n`;
  if (!answer?.given) return check;
  if (notByClaims(answer)) {
    const files = "# the token is not shown here: save it as token.jwt, and its issuer's keys as jwks.json\n";
    return `${check}${files}kubeauthn explain authn.yaml --token-file token.jwt --jwks jwks.json --show-claims${version}\n`;
  }
  const claims = document_("claims.json", written.trim() || json(answer.given.claims, 2));
  return `${check}${claims}kubeauthn explain authn.yaml --claims claims.json --show-claims${version}\n`;
}
