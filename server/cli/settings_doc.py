"""`python -m server.cli.settings_doc` prints the table of all settings, which docs/configuration.md holds."""

from collections.abc import Iterator
from dataclasses import MISSING, Field, fields
from typing import Any

from server.settings import Settings

_FIRST = {
    "host": "address and data",
    "runner": "runner",
    "token_file": "access",
    "store": "storage and export",
    "connectors": "connectors",
    "origins": "browsers, proxies and logs",
    "max_body": "bodies and frames",
    "entailment": "background",
    "trial_processes": "trials and promotions",
    "max_queries": "numbers of queries and clients",
    "max_lag": "back-pressure",
    "max_derivations": "limits of a query",
    "header_s": "times for requests",
    "buffer_solutions": "subscribers",
    "webhook_attempts": "webhooks",
    "audit_bytes": "audit",
}
"""The groups of the settings in the help: the first setting of each, and its title."""
_FORMS = {
    "_s ": "SECONDS",
    "retain_age": "TIME",
    "_bytes": "SIZE",
    "_memory": "SIZE",
    "max_body": "SIZE",
    "max_bodies": "SIZE",
    "max_frame": "SIZE",
    "max_query ": "SIZE",
    "max_background": "SIZE",
    "max_sparql_answer": "SIZE",
    "Path": "PATH",
    "tuple": "TEXT,...",
    "str": "TEXT",
}
"""Parts of a setting's name and type, and the form of its values: the first one that fits counts, and N fits all."""
_HEADER = "| setting | default | meaning |\n|---|---|---|"


def table() -> str:
    """Return the settings as a Markdown table, one row each with the first sentence of its help, in the order of Settings."""
    return "\n".join((_HEADER, *_rows())) + "\n"


def group_settings() -> list[tuple[str, list[Field[Any]]]]:
    """Return the settings in their order, by the titles of their groups."""
    groups: list[tuple[str, list[Field[Any]]]] = []
    for setting in fields(Settings):
        if setting.name in _FIRST:
            groups.append((_FIRST[setting.name], []))
        groups[-1][1].append(setting)
    return groups


def form_of(setting: Field[Any]) -> str:
    """Return what a flag's help shows in place of its value."""
    if setting.metadata["form"]:
        return str(setting.metadata["form"])
    return next((form for part, form in _FORMS.items() if part in f"{setting.name} {setting.type}"), "N")


def _rows() -> Iterator[str]:
    for setting in fields(Settings):
        assert setting.default is not MISSING
        sentence = setting.metadata["about"].partition(". ")[0].removesuffix(".")
        yield f"| `{setting.name}` | {show_default(setting.default)} | {sentence}. |"


def show_default(default: Any) -> str:
    """Return a default as Markdown, or an empty text where there is none."""
    match default:
        case None | ():
            return ""
        case int() if default >= 1 << 20 and default % (1 << 20) == 0:
            return f"{default >> 20} MiB"
        case int() if default >= 1 << 10 and default % (1 << 10) == 0:
            return f"{default >> 10} KiB"
        case int():
            return f"{default:,}" if default > 9_999 else str(default)
        case float():
            return f"{default:g}"
        case _:
            return f"`{default}`"


if __name__ == "__main__":
    print(table(), end="")
