"""`python -m server.cli.settings_doc` prints the table of all settings, which docs/configuration.md holds."""

from collections.abc import Iterator
from dataclasses import MISSING, fields
from typing import Any

from server.settings import Settings, flag_of, variable_of

_HEADER = "| setting, in the file | flag | variable | default | meaning |\n|---|---|---|---|---|"


def table() -> str:
    """Return the settings as a Markdown table, one row each, in the order of Settings."""
    return "\n".join((_HEADER, *_rows())) + "\n"


def _rows() -> Iterator[str]:
    for setting in fields(Settings):
        assert setting.default is not MISSING
        flag, variable = flag_of(setting.name), variable_of(setting.name)
        yield f"| `{setting.name}` | `{flag}` | `{variable}` | {_shown(setting.default)} | {setting.metadata['about']} |"


def _shown(default: Any) -> str:
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
