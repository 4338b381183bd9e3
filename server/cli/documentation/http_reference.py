"""Writes the reference of the HTTP interface as pages, one for each kind of resource, from the OpenAPI document."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

_SERVICE = "service"
_OF_SERVICE = ("livez", "readyz", "metrics", "check")
_METHODS = {"queries": "queries", "streams": "streams", "ontologies": "background", "sparql": "background"}
"""The page of a first path segment, where it is not the segment itself."""


def write_http_pages(document: Mapping[str, Any]) -> dict[str, str]:
    """Return the pages by their names, such as `queries.md`."""
    pages: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        first = path.split("/")[1]
        page = _SERVICE if first in _OF_SERVICE else _METHODS.get(first, first)
        lines = pages.setdefault(page, [f"# HTTP: {page}", ""])
        for method, operation in operations.items():
            lines += _describe_operation(method.upper(), path, operation)
    schemas = [line for name, schema in document["components"]["schemas"].items() for line in _describe_schema(name, schema)]
    pages["documents"] = ["# HTTP: documents", "", "Bodies of requests and answers are JSON documents of these types.", "", *schemas]
    return {f"{name}.md": "\n".join(lines) + "\n" for name, lines in pages.items()}


def _describe_operation(method: str, path: str, operation: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"## {operation['summary']}", "", f"`{method} {path}`", "")
    if "description" in operation:
        yield from (operation["description"], "")
    if operation.get("parameters"):
        yield from ("| parameter | in | type | default | meaning |", "|---|---|---|---|---|")
        for each in operation["parameters"]:
            schema = each["schema"]
            default = f"`{schema['default']}`" if "default" in schema else "required" if each["required"] else ""
            yield f"| `{each['name']}` | {each['in']} | {_type_of(schema)} | {default} | {_cell(each.get('description', ''))} |"
        yield ""
    if "requestBody" in operation:
        yield from ("| body | type |", "|---|---|")
        yield from (f"| `{kind}` | {_type_of(content.get('schema', {}))} |" for kind, content in operation["requestBody"]["content"].items())
        yield ""
    yield from ("| status | meaning | answer |", "|---|---|---|")
    for status, response in sorted(operation["responses"].items()):
        kinds = ", ".join(f"`{kind}` {_type_of(content.get('schema', {}))}".strip() for kind, content in response.get("content", {}).items())
        yield f"| {status} | {_cell(response['description'])} | {kinds} |"
    yield ""


def _describe_schema(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"## {name}", "")
    if "description" in schema:
        yield from (schema["description"], "")
    if "properties" in schema:
        yield from ("| property | type | default | meaning |", "|---|---|---|---|")
        for each, found in schema["properties"].items():
            default = f"`{found['default']}`" if "default" in found else "required" if each in schema.get("required", ()) else ""
            yield f"| `{each}` | {_type_of(found)} | {default} | {_cell(found.get('description', ''))} |"
        yield ""


def _type_of(schema: Mapping[str, Any]) -> str:
    match schema:
        case {"$ref": str(reference)}:
            name = reference.rpartition("/")[2]
            found = f"[{name}](documents.md#{name.lower()})"
        case {"anyOf": choices} | {"oneOf": choices}:
            found = " or ".join(_type_of(each) for each in choices)
        case {"enum": values}:
            found = " or ".join(f"`{value}`" for value in values)
        case {"const": value}:
            found = f"`{value}`"
        case {"type": "array", "items": items}:
            found = f"array of {_type_of(items)}"
        case {"type": kind}:
            found = str(kind)
        case _:
            found = ""
    return found


def _cell(text: str) -> str:
    """Return a text as it can stand in a cell of a table."""
    return re.sub(r"\s+", " ", text).replace("|", "\\|")
