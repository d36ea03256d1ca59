// The state in the address, after the #, which browsers send to nobody. A token or a key is never in it.

const LARGEST = 1 << 20; // of a state, unpacked: an address comes from anywhere
// In any text, also between quotes or after "Bearer". From the beginning of a word alone: a long one is read once.
const TOKEN = /(?<![\w-])[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}/;
const OBJECT = /ey[AIJ]|ew[0ko]/; // base64 of a brace and what may follow it in JSON: a quote or a blank

const turn = { latest: 0 };

function encode(bytes) {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

const decode = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));

async function through(stream, bytes) {
  const reader = new Blob([bytes]).stream().pipeThrough(stream).getReader();
  const parts = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return new Uint8Array(await new Blob(parts).arrayBuffer());
    size += value.length;
    if (size > LARGEST) {
      await reader.cancel();
      throw new RangeError("too large");
    }
    parts.push(value);
  }
}

export const holdsToken = (text) => TOKEN.test(text.replace(/\s+/g, "")) && OBJECT.test(text);

// `anew`: as a new entry of the browser's history, so that Back leads to what was before.
export async function keep(state, { anew = false } = {}) {
  const number = (turn.latest += 1);
  const safe = Object.fromEntries(Object.entries(state).filter(([, text]) => !holdsToken(text)));
  try {
    const packed = await through(new CompressionStream("deflate-raw"), new TextEncoder().encode(JSON.stringify(safe)));
    const address = `#${encode(packed)}`;
    if (number !== turn.latest || address === location.hash) return;
    if (anew) history.pushState(null, "", address);
    else history.replaceState(null, "", address);
  } catch {
    // too large for an address, or too many in a short time: the page works without
  }
}

export async function kept() {
  if (location.hash.length < 2) return null;
  try {
    const text = await through(new DecompressionStream("deflate-raw"), decode(location.hash.slice(1)));
    const state = JSON.parse(new TextDecoder().decode(text));
    const known = ["configuration", "claims", "release"].filter((name) => typeof state[name] === "string");
    return known.length ? Object.fromEntries(known.map((name) => [name, state[name]])) : null;
  } catch {
    return null; // an address that was cut off: begin anew
  }
}
