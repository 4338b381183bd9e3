"""Serves the documentation site: static files that `make docs` makes of `docs/` at the top of the project, and that
come with the wheel.

In a checkout without the site, it serves the Markdown files of the pages. Also writes the descriptions of the
interfaces as YAML.
"""

import json
from collections.abc import Iterator
from html import escape
from http import HTTPStatus
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from server.http.problem_details import Fault, Problem

DIST = Path(__file__).parents[1] / "documentation" / "dist"
SOURCES = Path(__file__).parents[2] / "docs"
"""In a checkout, the pages are in this folder."""
ASYNCAPI = Path(__file__).parents[1] / "asyncapi.yaml"
YAML = "application/yaml"
_WORDS = frozenset(("y", "yes", "n", "no", "on", "off", "true", "false", "null"))
"""YAML 1.1, which many readers still follow, has other values for these words unless they are quoted."""
_POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; object-src 'none'; base-uri 'none'; frame-ancestors 'none'"
"""The search writes its styles into the page, which the policy of the other answers forbids.

Scripts come from files here too.
"""
_ABSENT = "this server was installed without its documentation site; 'make docs' in a checkout builds it"


class DocumentationFiles(StaticFiles):
    """Answers without a token, because the pages hold nothing of the server's data."""

    def __init__(self) -> None:
        super().__init__(directory=DIST, html=True, check_dir=False)

    async def check_config(self) -> None:
        """Check nothing at first: each request finds out whether there is a site, and says what builds it."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Return a file, or the site's own page for what is not there; without a site, a page's source.

        Raises: Fault 404.
        """
        if not (DIST / "index.html").is_file():
            return _get_source(path)
        return await super().get_response(path, scope)

    def file_response(self, *args: Any, **options: Any) -> Response:
        """Return a file, which browsers keep, and ask for again by its tag."""
        response = super().file_response(*args, **options)
        response.headers.update({"Cache-Control": "no-cache", "Content-Security-Policy": _POLICY})
        return response


def _get_source(path: str) -> Response:
    """Return a page's Markdown file, or the list of these files.

    Raises: Fault 404 without a checkout, and for what is no page.
    """
    is_checkout = (SOURCES / "zensical.toml").is_file()
    pages = {file.relative_to(SOURCES).as_posix(): file for file in sorted(SOURCES.rglob("*.md"))} if is_checkout else {}
    if not pages:
        raise Fault(Problem(HTTPStatus.NOT_FOUND, "not-found", _ABSENT))
    headers = {"Cache-Control": "no-cache", "Content-Security-Policy": _POLICY}
    if path in ("", ".", "index.html"):
        links = "".join(f'<li><a href="{escape(name)}">{escape(name)}</a></li>' for name in pages)
        about = "This checkout has no documentation site; <code>make docs</code> builds it. These are the pages' Markdown files:"
        return HTMLResponse(f"<!DOCTYPE html><title>epsparql</title><h1>Documentation</h1><p>{about}</p><ul>{links}</ul>", headers=headers)
    file = pages.get(f"{path.rstrip('/').removesuffix('.md').removesuffix('/index.html')}.md")
    if file is None:
        raise Fault(Problem(HTTPStatus.NOT_FOUND, "not-found", f"docs/ has no page {path!r}; /docs/ lists the pages"))
    return FileResponse(file, media_type="text/plain; charset=utf-8", headers=headers)


async def _enter_folder() -> Response:
    """Lead to the folder, because the links of its first page are relative."""
    return RedirectResponse("docs/", HTTPStatus.PERMANENT_REDIRECT)


def mount_documentation(app: FastAPI) -> None:
    """Add the site to an app, at /docs."""
    app.add_api_route("/docs", _enter_folder, methods=["GET", "HEAD"], include_in_schema=False)
    app.mount("/docs", DocumentationFiles())


def write_yaml(document: Any) -> str:
    """Return a document as YAML in block style. Scalars and empty values are written as JSON, which YAML 1.2 includes."""
    return "\n".join(_write_lines(document, "")) + "\n"


def _write_lines(node: Any, indent: str) -> Iterator[str]:
    for key, value in node.items() if isinstance(node, dict) else (("-", item) for item in node):
        label = f"{indent}-" if isinstance(node, list) else f"{indent}{_write_key(key)}:"
        if isinstance(value, dict | list) and value:
            yield label
            yield from _write_lines(value, indent + "  ")
        else:
            yield f"{label} {json.dumps(value, ensure_ascii=False)}"


def _write_key(key: str) -> str:
    plain = key.replace("_", "").isalnum() and not key[0].isdigit() and key.lower() not in _WORDS
    return key if plain else json.dumps(key)
