// The certified `oidc-provider` on loopback over TLS: one client, any login, keys from a file.
//
//   node provider.mjs ISSUER CERT KEY CLIENT_ID CLIENT_SECRET REDIRECT JWKS_FILE NODE_MODULES
//
// SIGHUP reads the keys again: a rotation.

import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [issuer, certificate, key, clientId, clientSecret, redirect, keys, modules] = process.argv.slice(2);
const found = createRequire(`${modules}/index.js`).resolve("oidc-provider");
const { default: Provider } = await import(pathToFileURL(found).href);

function provider() {
  const made = new Provider(issuer, {
    clients: [{
      client_id: clientId, client_secret: clientSecret, redirect_uris: [redirect],
      grant_types: ["authorization_code"], id_token_signed_response_alg: "ES256",
    }],
    enabledJWA: { idTokenSigningAlgValues: ["ES256"] },
    jwks: JSON.parse(readFileSync(keys, "utf-8")),
    claims: { openid: ["sub"], profile: ["name", "groups"] },
    conformIdTokenClaims: false,
    pkce: { required: () => false },
    cookies: { keys: ["only for tests"] },
    findAccount: (context, id) => ({
      accountId: id,
      claims: () => ({ sub: id, name: `The user ${id}`, groups: ["dev", "ops"] }),
    }),
  });
  return made.callback();
}

let answer = provider();
process.on("SIGHUP", () => { answer = provider(); });
createServer({ cert: readFileSync(certificate), key: readFileSync(key) }, (request, response) => answer(request, response))
  .listen(Number(new URL(issuer).port), "127.0.0.1");
