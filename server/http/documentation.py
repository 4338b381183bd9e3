"""Serves the documentation site: static files that `make docs` makes of `docs/` at the top of the project, and that come with the wheel."""

from http import HTTPStatus
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.responses import RedirectResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from server.http.problem_details import Fault, Problem

DIST = Path(__file__).parents[1] / "documentation" / "dist"
_POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; object-src 'none'; base-uri 'none'; frame-ancestors 'none'"
"""The search writes its styles into the page, which the policy of the other answers forbids. Scripts come from files here too."""
_ABSENT = "this server was installed without its documentation site; 'make docs' in a checkout builds it"


class DocumentationFiles(StaticFiles):
    """Answers without a token, because the pages hold nothing of the server's data."""

    def __init__(self) -> None:
        super().__init__(directory=DIST, html=True, check_dir=False)

    async def check_config(self) -> None:
        """Check nothing at first: each request finds out whether there is a site, and says what builds it."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Return a file, or the site's own page for what is not there. Raises: Fault 404 without a site."""
        if not (DIST / "index.html").is_file():
            raise Fault(Problem(HTTPStatus.NOT_FOUND, "not-found", _ABSENT))
        return await super().get_response(path, scope)

    def file_response(self, *args: Any, **options: Any) -> Response:
        """Return a file, which browsers keep, and ask for again by its tag."""
        response = super().file_response(*args, **options)
        response.headers.update({"Cache-Control": "no-cache", "Content-Security-Policy": _POLICY})
        return response


async def _enter_folder() -> Response:
    """Lead to the folder, because the links of its first page are relative."""
    return RedirectResponse("docs/", HTTPStatus.PERMANENT_REDIRECT)


def mount_documentation(app: FastAPI) -> None:
    """Add the site to an app, at /docs."""
    app.add_api_route("/docs", _enter_folder, methods=["GET", "HEAD"], include_in_schema=False)
    app.mount("/docs", DocumentationFiles())
