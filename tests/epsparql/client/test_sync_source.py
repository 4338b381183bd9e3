"""The blocking client is what its source gives: the client for asyncio."""

import subprocess
import sys
from pathlib import Path

from epsparql.connection.sync_source import write_sync

PACKAGE = Path(__file__).parents[3] / "epsparql"


def test_the_blocking_client_is_up_to_date() -> None:
    """`make client` writes it anew."""
    text = write_sync((PACKAGE / "async_client.py").read_text(encoding="utf-8"))
    for step in (["check", "--fix", "--quiet"], ["format", "--quiet"]):
        ruff = [sys.executable, "-m", "ruff", *step, "--stdin-filename", str(PACKAGE / "client.py"), "-"]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout
    assert text == (PACKAGE / "client.py").read_text(encoding="utf-8")


def test_words_are_replaced_whole() -> None:
    assert write_sync("async def f(x: Awaitable[object]) -> AsyncClient:\n    return await AsyncClientele").endswith(
        "\ndef f(x: object) -> Client:\n    return AsyncClientele"
    )
