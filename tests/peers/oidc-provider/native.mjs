// The certified `oidc-provider` for a native program: a public client with PKCE, device codes and refresh tokens.
//
//   node native.mjs ISSUER CERT KEY CLIENT_ID JWKS_FILE NODE_MODULES

import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [issuer, certificate, key, clientId, keys, modules] = process.argv.slice(2);
const found = createRequire(`${modules}/index.js`).resolve("oidc-provider");
const { default: Provider } = await import(pathToFileURL(found).href);

const provider = new Provider(issuer, {
  clients: [{
    client_id: clientId, application_type: "native", token_endpoint_auth_method: "none",
    redirect_uris: ["http://127.0.0.1/callback"], id_token_signed_response_alg: "ES256",
    grant_types: ["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"],
  }],
  features: { deviceFlow: { enabled: true }, revocation: { enabled: true } },
  enabledJWA: { idTokenSigningAlgValues: ["ES256"] },
  jwks: JSON.parse(readFileSync(keys, "utf-8")),
  claims: { openid: ["sub"], profile: ["name", "groups"] },
  conformIdTokenClaims: false,
  cookies: { keys: ["only for tests"] },
  findAccount: (context, id) => ({
    accountId: id,
    claims: () => ({ sub: id, name: `The user ${id}`, groups: ["dev", "ops"] }),
  }),
});
const answer = provider.callback();
createServer({ cert: readFileSync(certificate), key: readFileSync(key) }, (request, response) => answer(request, response))
  .listen(Number(new URL(issuer).port), "127.0.0.1");
