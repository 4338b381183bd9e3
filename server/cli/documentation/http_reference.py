"""Writes the reference of the HTTP interface as pages, one for each kind of resource, from the OpenAPI document."""

import re
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

_PAGES = [
    (r"/queries/\{name\}/instances", "instances"),
    (r"/queries/\{name\}/observers", "webhooks"),
    (r"/queries/\{name\}/(solutions|events|ldes)", "solutions"),
    (r"/queries/\{name\}/(plan|goals|diagnosis)", "inspection"),
    (r"/(livez|readyz|metrics|check)", "service"),
    (r"/(ontologies|sparql)", "background"),
]
"""The page of the paths that begin so. All other paths stand on the page of their first segment."""
_SHARED = "documents"
"""The page of the types of JSON that several pages use."""


def write_http_pages(document: Mapping[str, Any]) -> dict[str, str]:
    """Return the pages by their names, such as `queries.md`. A type that one page alone uses stands at its end."""
    schemas = document["components"]["schemas"]
    homes = dict.fromkeys(schemas, "")
    for path, operations in document["paths"].items():
        for name in _reach_types(operations, schemas):
            homes[name] = _page_of(path) if homes[name] in ("", _page_of(path)) else _SHARED
    pages: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        lines = pages.setdefault(_page_of(path), [f"# HTTP: {_page_of(path)}", ""])
        for method, operation in operations.items():
            lines += _describe_operation(method.upper(), path, operation)
    pages[_SHARED] = [f"# HTTP: {_SHARED}", "", "Bodies of requests and answers are JSON documents. Several pages use these types.", ""]
    for name, schema in schemas.items():
        pages[homes[name] or _SHARED] += _describe_schema(name, schema)
    return {f"{page}.md": _link_types("\n".join(lines), page, homes) + "\n" for page, lines in pages.items()}


def _page_of(path: str) -> str:
    return next((page for begin, page in _PAGES if re.match(begin, path)), path.split("/")[1])


def _reach_types(part: object, schemas: Mapping[str, Any]) -> set[str]:
    """Return the types that a part of the document uses, directly or through other types."""
    found, todo = set[str](), _named_types(part)
    while todo:
        name = todo.pop()
        found.add(name)
        todo |= _named_types(schemas[name]) - found
    return found


def _named_types(part: object) -> set[str]:
    return set(re.findall(r"#/components/schemas/(\w+)", str(part)))


def _link_types(text: str, page: str, homes: Mapping[str, str]) -> str:
    """Return a page whose references to types are links."""

    def link(reference: re.Match[str]) -> str:
        home = homes[reference[1]] or _SHARED
        return f"[{reference[1]}]({'' if home == page else f'{home}.md'}#{reference[1].lower()})"

    return re.sub(r"#/components/schemas/(\w+)", link, text)


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
    faults: dict[str, list[str]] = {}
    for status, response in sorted(operation["responses"].items()):
        kinds = ", ".join(f"`{kind}` {_type_of(content.get('schema', {}))}".strip() for kind, content in response.get("content", {}).items())
        if status >= "400" and response["description"] == HTTPStatus(int(status)).phrase:
            faults.setdefault(kinds, []).append(status)
        else:
            yield f"| {status} | {_cell(response['description'])} | {kinds} |"
    yield from (f"| {', '.join(statuses)} | an error | {kinds} |" for kinds, statuses in faults.items())
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
            found = reference  # a link, once the page of each type is known
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
