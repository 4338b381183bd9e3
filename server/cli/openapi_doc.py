"""`python -m server.cli.openapi_doc` prints the app's own OpenAPI document as YAML, which openapi.yaml holds."""

from contextlib import AbstractAsyncContextManager

from server.app import create_app, document
from server.http.documentation import write_yaml
from server.service import Service


def _never() -> AbstractAsyncContextManager[Service]:
    raise AssertionError("the app is described, not started")


def yaml() -> str:
    return write_yaml(document(create_app(_never)))


if __name__ == "__main__":
    print(yaml(), end="")
