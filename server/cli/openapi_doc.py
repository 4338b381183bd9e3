"""`python -m server.cli.openapi_doc` prints the app's own OpenAPI document as YAML, which openapi.yaml holds."""

import json
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any

from server.app import create_app, document
from server.service import Service


def _never() -> AbstractAsyncContextManager[Service]:
    raise AssertionError("the app is described, not started")


def yaml() -> str:
    return "\n".join(_lines(document(create_app(_never)), "")) + "\n"


def _lines(node: Any, indent: str) -> Iterator[str]:
    """Yield YAML lines in block style. Scalars and empty values are written as JSON, which YAML 1.2 includes."""
    for key, value in node.items() if isinstance(node, dict) else (("-", item) for item in node):
        label = f"{indent}-" if isinstance(node, list) else f"{indent}{_key(key)}:"
        if isinstance(value, dict | list) and value:
            yield label
            yield from _lines(value, indent + "  ")
        else:
            yield f"{label} {json.dumps(value, ensure_ascii=False)}"


def _key(key: str) -> str:
    return key if key.replace("_", "").isalnum() and not key[0].isdigit() else json.dumps(key)


if __name__ == "__main__":
    print(yaml(), end="")
