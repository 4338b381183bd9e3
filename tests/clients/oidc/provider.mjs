// An OpenID Connect provider with one client, whose access tokens are JWTs for the audience that it asks for. Each start has a key of its own.
import { createServer } from "node:http";
import { exportJWK, generateKeyPair } from "jose";
import { Provider } from "oidc-provider";

const server = createServer().listen(Number(process.argv[2] ?? 0), "127.0.0.1", async () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const { privateKey } = await generateKeyPair("RS256", { extractable: true });
  const key = { ...(await exportJWK(privateKey)), kid: `key ${Date.now()}`, use: "sig", alg: "RS256" };
  const provider = new Provider(issuer, {
    jwks: { keys: [key] },
    clients: [{ client_id: "shift", client_secret: "secret", grant_types: ["client_credentials"], redirect_uris: [], response_types: [] }],
    extraTokenClaims: () => ({ groups: ["operators"] }),
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: false },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_, audience) => ({ audience, scope: "", accessTokenFormat: "jwt", accessTokenTTL: 60 }),
      },
    },
  });
  server.on("request", provider.callback());
  console.log(issuer);
});
