"""Signs webhooks according to Standard Webhooks 1.0, symmetric (v1)."""

import base64
import binascii
import hashlib
import hmac
import secrets

from server.http.problem_details import bad_request

_PREFIX = "whsec_"
_LEAST, _MOST = 24, 64
"""The specification limits a secret to this range of bytes."""


def create_secret() -> str:
    return _PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def decode_secret(secret: str) -> bytes:
    """Return the key in a secret. Raises: Fault 400 for what is no secret."""
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not secret.startswith(_PREFIX) or not _LEAST <= len(key) <= _MOST:
        detail = f"secret must be {_PREFIX} and then {_LEAST} to {_MOST} bytes in base64; leave it out to get one"
        raise bad_request("invalid-secret", detail, expected=f"{_PREFIX}<base64>")
    return key


def sign_delivery(secret: str, message_id: str, timestamp_s: int, body: bytes) -> str:
    """Return the header webhook-signature of a delivery."""
    signed = b"%s.%d.%s" % (message_id.encode(), timestamp_s, body)
    return "v1," + base64.b64encode(hmac.digest(decode_secret(secret), signed, hashlib.sha256)).decode()
