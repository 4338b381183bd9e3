// An OpenID Connect provider with two clients, whose access tokens are JWTs for the audience that they ask for. Each start has a key of its own.
import { createServer } from "node:http";
import { exportJWK, generateKeyPair } from "jose";
import { Provider } from "oidc-provider";

const [port = "0", lifetime = "60"] = process.argv.slice(2);
const server = createServer().listen(Number(port), "127.0.0.1", async () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const { privateKey } = await generateKeyPair("RS256", { extractable: true });
  const key = { ...(await exportJWK(privateKey)), kid: `key ${Date.now()}`, use: "sig", alg: "RS256" };
  const machine = { client_id: "shift", client_secret: "secret", grant_types: ["client_credentials"], redirect_uris: [], response_types: [] };
  const console_ = {
    client_id: "console",
    application_type: "native", // any port of this machine
    token_endpoint_auth_method: "none",
    grant_types: ["authorization_code", "refresh_token"],
    redirect_uris: ["http://127.0.0.1/"],
  };
  const provider = new Provider(issuer, {
    jwks: { keys: [key] },
    clients: [machine, console_],
    extraTokenClaims: () => ({ groups: ["operators"] }),
    issueRefreshToken: () => true,
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: true }, // a page that takes any name and password
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: (_, audience) => ({ audience, scope: "", accessTokenFormat: "jwt", accessTokenTTL: Number(lifetime) }),
      },
    },
  });
  server.on("request", provider.callback());
  console.log(issuer);
});
