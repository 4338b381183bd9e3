"""openapi.yaml is the app's own document."""

from pathlib import Path

import httpx

from server.openapi import yaml

COPY = Path(__file__).parents[2] / "openapi.yaml"


def test_the_copy_is_the_document() -> None:
    assert COPY.read_text(encoding="utf-8") == yaml(), "python -m server.openapi > openapi.yaml"


def test_it_is_served(http: httpx.Client) -> None:
    document = http.get("/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    assert set(document["paths"]) >= {"/streams/{name}/events", "/queries/{name}/solutions", "/livez", "/readyz"}
    assert "ProblemDocument" in document["components"]["schemas"]


def test_every_reference_leads_somewhere(http: httpx.Client) -> None:
    document = http.get("/openapi.json").json()
    schemas = document["components"]["schemas"]

    def walk(node: object) -> None:
        if isinstance(node, dict):
            if "$ref" in node:
                assert node["$ref"].removeprefix("#/components/schemas/") in schemas
            for value in node.values():
                walk(value)
        elif isinstance(node, list):
            for value in node:
                walk(value)

    walk(document)
