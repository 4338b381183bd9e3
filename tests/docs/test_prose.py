"""The words and sentences that users read: no retired word, and no sentence of more than 25 words."""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from server.cli.commands import parser
from server.cli.openapi_doc import yaml

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MOST_WORDS = 25

FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`+[^`]*`+")
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
BLOCK = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*] |\d+\. |#|\|))")
MARK = re.compile(r"^\s*(?:[-*] |\d+\. |#+ )")
END = re.compile(r"[.!?…][*\"”)\]]*(?=\s|$)")
SHORT = re.compile(r"\b(?:e\.g|i\.e|vs|cf|doi)\.")

RETIRED = re.compile(r"\b(?:buckets?|observers?|knowledge|goals?|ontolog(?:y|ies)|partial solutions?|askers?)\b", re.IGNORECASE)
ALLOWED = {
    "docs/glossary.md": {"goal"},  # the engine's own word, which the glossary explains
    "docs/ARCHITECTURE.md": {"goal", "goals"},
    "docs/benchmarks.md": {"bucket", "buckets"} - {"bucket", "buckets"},
}
"""The retired words that a page may use outside of code, such as names of stored things and of the engine's insides."""
STORES = re.compile(r"s3://BUCKET|BUCKET|a bucket|the bucket|of the bucket", re.IGNORECASE)
"""Object stores have buckets of their own."""


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a Markdown page; code and links count as the words that they show."""
    text = LINK.sub(r"\1", CODE.sub("code", FENCE.sub("\n\n", text)))
    for block in BLOCK.split(text):
        for cell in block.split("|"):
            yield from (found for sentence in END.split(SHORT.sub("", MARK.sub("", cell))) if (found := " ".join(sentence.split())))


def long_ones(text: str) -> list[str]:
    return [f"{len(words)}: {sentence}" for sentence in sentences(text) if len(words := re.findall(r"\w[\w'’.,/-]*", sentence)) > MOST_WORDS]


if __name__ == "__main__":
    import sys

    for page in sys.argv[1:]:
        print(page, *long_ones(Path(page).read_text(encoding="utf-8")), sep="\n")
