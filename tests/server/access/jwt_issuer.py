"""An issuer of JWTs on this machine: its documents are real, served over HTTP, and its keys may change."""

import json
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm
from jwt.warnings import InsecureKeyLengthWarning

AUDIENCE = "epsparql"
DISCOVERY = "/.well-known/openid-configuration"


class Key:
    """A private key with the id under which an issuer publishes it."""

    def __init__(self, key_id: str, algorithm: str = "ES256", bits: int = 2048) -> None:
        self.id, self.algorithm = key_id, algorithm
        match algorithm[:2]:
            case "ES":
                curve = {"ES256": ec.SECP256R1(), "ES384": ec.SECP384R1(), "ES512": ec.SECP521R1()}[algorithm]
                self.private: Any = ec.generate_private_key(curve)
                public = ECAlgorithm.to_jwk(self.private.public_key(), as_dict=True)
            case "Ed":
                self.private = ed25519.Ed25519PrivateKey.generate()
                public = OKPAlgorithm.to_jwk(self.private.public_key(), as_dict=True)
            case _:
                self.private = rsa.generate_private_key(65537, bits)
                public = RSAAlgorithm.to_jwk(self.private.public_key(), as_dict=True)
        self.public: dict[str, Any] = {**public, "kid": key_id}

    def sign(self, claims: dict[str, Any], **header: Any) -> str:
        with warnings.catch_warnings(action="ignore", category=InsecureKeyLengthWarning):  # a test's purpose
            return jwt.encode(claims, self.private, self.algorithm, {"kid": self.id, **header})


class Issuer:
    """The documents of an issuer, by path, and how often each was fetched."""

    def __init__(self, url: str, *keys: Key) -> None:
        self.url, self.keys, self.status = url, list(keys), 200
        self.fetched: list[str] = []
        self.changed: dict[str, Any] = {}

    def document(self, path: str) -> bytes:
        about = {"issuer": self.url, "jwks_uri": f"{self.url}/keys"}
        found = self.changed.get(path, {DISCOVERY: about, "/keys": {"keys": [key.public for key in self.keys]}}.get(path))
        return found if isinstance(found, bytes) else json.dumps(found).encode()

    def claims(self, **changed: Any) -> dict[str, Any]:
        """Return the claims of a good token; those that are changed to None are left out."""
        good = {"iss": self.url, "aud": AUDIENCE, "sub": "ada", "iat": int(time.time()), "exp": int(time.time()) + 300}
        return {name: value for name, value in (good | changed).items() if value is not None}

    def token(self, **changed: Any) -> str:
        return self.keys[0].sign(self.claims(**changed))


@contextmanager
def issuing(*keys: Key) -> Iterator[Issuer]:
    """Serve the documents of an issuer with these keys."""

    class Documents(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = issuer.document(self.path)
            issuer.fetched.append(self.path)
            self.send_response(issuer.status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Documents) as server:
        issuer = Issuer(f"http://127.0.0.1:{server.server_port}", *keys)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield issuer
        finally:
            server.shutdown()
            thread.join()
