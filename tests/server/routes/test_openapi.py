"""openapi.yaml is the app's own document."""

import json
from pathlib import Path

import httpx
from yaml import safe_load

from epsparql.events.media_types import LINES
from pipeline.mapping.stream_body import MAPPED_TYPES
from server.cli.openapi_doc import yaml

COPY = Path(__file__).parents[3] / "openapi.yaml"

LINE_MAPPING = {
    "pattern": "combined", "base": "http://example.org/", "time": "time", "time_format": "%d/%b/%Y:%H:%M:%S %z", "properties": {"status": ":status"}
}  # fmt: skip
"""This mapping reads the example of lines, which the example of a stream's settings does not."""


def test_the_copy_is_the_document() -> None:
    assert COPY.read_text(encoding="utf-8") == yaml(), "python -m server.cli.openapi_doc > openapi.yaml"


def test_it_is_served(http: httpx.Client) -> None:
    document = http.get("/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    assert set(document["paths"]) >= {"/streams/{name}/events", "/queries/{name}/solutions", "/livez", "/readyz"}
    assert "ProblemDocument" in document["components"]["schemas"]


def test_documents_are_served_as_yaml(http: httpx.Client) -> None:
    """Readers of YAML 1.1 find texts for keys, too: `on` is a property."""
    served = http.get("/openapi.yaml")
    assert served.headers["content-type"] == "application/yaml"
    assert served.text == COPY.read_text(encoding="utf-8")
    document = safe_load(served.text)
    assert document == http.get("/openapi.json").json()
    assert "on" in document["components"]["schemas"]["PlanStep"]["properties"]
    assert http.get("/asyncapi.yaml").content == (COPY.parent / "asyncapi.yaml").read_bytes()


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


def test_what_the_examples_show_is_taken(http: httpx.Client) -> None:
    document, taken = http.get("/openapi.json").json(), 0
    assert (
        http.put("/queries/observed", content="SELECT * WHERE { ?s ?p ?o }", headers={"Content-Type": "application/sparql-query"}).status_code == 201
    )
    parametric = "SELECT * PARAMETERS (?room ?limit) WHERE { ?room ?p ?v FILTER (?v > ?limit) }"
    assert http.put("/queries/parametric", content=parametric, headers={"Content-Type": "application/sparql-query"}).status_code == 201
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            for media, content in operation.get("requestBody", {}).get("content", {}).items():
                if "example" in content:
                    shown = content["example"]
                    body = shown if isinstance(shown, str) else json.dumps(shown)
                    name = "observed" if "observers" in path else "parametric" if "instances" in path else f"example {taken}"
                    if media in MAPPED_TYPES and path.endswith("/events"):
                        settings = document["paths"]["/streams/{name}"]["put"]["requestBody"]["content"]["application/json"]["example"]
                        settings = settings if media != LINES else {"mapping": LINE_MAPPING}
                        assert http.put(f"/streams/{name}", json=settings).is_success
                    made = path.replace("{name}", name).replace("{id}", "1").replace("{instance}", "1").replace("{signal}", "logs")
                    answer = http.request(
                        method, made, content=body, headers={"Content-Type": media}, params={"name": name} if path == "/queries" else {}
                    )
                    # where there is no network, the webhook's host is not found
                    assert answer.is_success or answer.json()["code"] == "target-refused", (path, media, answer.text)
                    taken += 1
    assert taken >= 10
