"""This module names the optional parts of an installation, and the command that adds one."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

EXTRAS = {
    "engine": ("msgspec", "numpy", "obstore", "pyarrow", "pyoxigraph"),
    "server": ("fastapi", "httpx", "prometheus_client", "pydantic", "pyspark", "rich", "uvicorn"),
    "mcp": ("mcp",),
    "oidc": ("jwt", "cryptography"),
    "shacl": ("pyshacl",),
    "otel": ("opentelemetry.proto", "opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"),
    "pandas": ("pandas",),
    "polars": ("polars",),
}
"""Each extra of pyproject.toml that code asks for, with the modules by which it is recognised."""


class MissingExtra(ImportError):
    """Signals that a part of epsparql is not installed; the message has the command that adds it."""

    def __init__(self, user: str, extra: str, module: str) -> None:
        super().__init__(user, extra, module)
        self.user, self.extra, self.name = user, extra, module

    def __str__(self) -> str:
        return f"{self.user} needs {self.name}, which is not installed; add it with: pip install 'epsparql[{self.extra}]'"


def check_extra(extra: str, user: str) -> None:
    """Check that an extra is installed, without loading it. Raises: MissingExtra, which names its `user`."""
    for module in EXTRAS[extra]:
        if not _is_installed(module):
            raise MissingExtra(user, extra, module)


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package around it is missing
        return False


def load_extra(extra: str, user: str, module: str = "") -> Any:
    """Return a module of an extra, by default the one that is named like it. Raises: MissingExtra."""
    check_extra(extra, user)
    return import_module(module or extra)
