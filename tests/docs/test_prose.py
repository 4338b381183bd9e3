"""The words and sentences that users read: no retired word, and no sentence of more than 25 words."""

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from server.cli.commands import parser
from server.cli.openapi_doc import yaml

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "language").glob("*.md")),
    *sorted((ROOT / "docs" / "operations").glob("*.md")),
    *sorted((ROOT / "docs" / "recipes").glob("*.md")),
    *sorted((ROOT / "docs" / "cookbook").glob("*.md")),
    *sorted((ROOT / "docs" / "concepts").glob("*.md")),
]
MOST_WORDS = 25

COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`+[^`]*`+")
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
BLOCK = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*] |\d+\. |\|))|^#.*$", re.MULTILINE)
MARK = re.compile(r"^\s*(?:[-*] |\d+\. )")
END = re.compile(r"[.!?…][*\"”)\]]*(?=\s|$)")
WORD = re.compile(r"\w[\w'.,/-]*")
SHORT = re.compile(r"\b(?:e\.g|i\.e|vs|cf|doi)\.")

RETIRED = re.compile(r"\b(?:buckets?|observers?|knowledge|goals?|ontolog(?:y|ies)|partial solutions?|askers?)\b", re.IGNORECASE)
ALLOWED = {
    "ARCHITECTURE.md": {"goal", "goals"},  # the map of the code speaks the engine's own words
    "glossary.md": {"goal", "ontology"},  # it explains the engine's word, and names two ontologies of the W3C
    "paper-experiments.md": {"knowledge"},  # the title of a paper
    "questions.md": {"knowledge"},  # what those who come from C-SPARQL look for
    "operations/stores.md": {"bucket"},  # what S3 has
    "configuration.md": {"bucket"},
    "serve --help": {"bucket"},
    "bench --help": {"goals"},  # a benchmark's name
}
"""The retired words that a text may use outside of code: names of stored things and of other systems, and the
engine's own words.
"""


def plain(text: str) -> str:
    """Return a Markdown text without code blocks; each piece of code is the word "code", and a link is its text."""
    return LINK.sub(r"\1", CODE.sub("code", FENCE.sub("\n\n", COMMENT.sub("", text))))


def sentences(text: str) -> Iterator[str]:
    for block in BLOCK.split(plain(text)):
        for cell in block.split("|"):
            yield from (found for sentence in END.split(SHORT.sub("", MARK.sub("", cell))) if (found := " ".join(sentence.split())))


def long_ones(text: str) -> list[str]:
    """Return the sentences of a text that have too many words."""
    return [f"{n} words: {sentence}" for sentence in sentences(text) if (n := len(WORD.findall(sentence))) > MOST_WORDS]


def helps() -> dict[str, str]:
    """Return what `epsparql --help` and each command's help say."""
    (commands,) = [action for action in parser()._actions if isinstance(action, argparse._SubParsersAction)]
    found = {"--help": [parser().description or "", *(action.help or "" for action in commands._choices_actions)]}
    for name, command in commands.choices.items():
        texts = (action.help for action in command._actions if action.help is not None and action.help != argparse.SUPPRESS and action.dest != "help")
        found[f"{name} --help"] = [command.description or "", *(text.replace("%%", "%") for text in texts)]
    return {name: "\n\n".join(texts) for name, texts in found.items()}


def described() -> str:
    """Return the summaries and descriptions of the OpenAPI document."""
    found = re.findall(r'^ *(?:- )?(?:summary|description): "((?:[^"\\]|\\.)*)"$', yaml(), re.MULTILINE)
    return "\n\n".join(json.loads(f'"{text}"') for text in found)


def texts() -> dict[str, str]:
    pages = {page.relative_to(ROOT).as_posix().removeprefix("docs/"): page.read_text(encoding="utf-8") for page in PAGES}
    return pages | helps() | {"openapi.yaml": described()}


TEXTS = texts()


def test_pages_are_short() -> None:
    """A decision is a page of paper, and all pages together have at most 70,000 words."""
    words = {page.relative_to(ROOT).as_posix(): len(page.read_text(encoding="utf-8").split()) for page in (ROOT / "docs").rglob("*.md")}
    decisions = {page: count for page, count in words.items() if "decisions/0" in page}
    assert len(decisions) <= 45
    assert {page: count for page, count in decisions.items() if count > 450} == {}
    assert {page: count for page, count in words.items() if count > 2_500} == {}
    assert sum(words.values()) + sum(len((ROOT / page).read_text(encoding="utf-8").split()) for page in ("README.md", "CHANGELOG.md")) <= 70_000


def test_the_index_has_each_decision() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = re.findall(r"\[\d{4} [^\]]+\]\((\d{4}-[a-z-]+\.md)\)", (folder / "README.md").read_text(encoding="utf-8"))
    assert sorted(listed) == sorted(path.name for path in folder.glob("0*.md"))


def test_there_is_what_is_checked() -> None:
    assert {"README.md", "language/time.md", "background.md", "serve --help", "replay --help"} <= TEXTS.keys()
    assert len(TEXTS["serve --help"]) > 3_000
    assert len(TEXTS["openapi.yaml"]) > 5_000
    assert long_ones("Short one. " + "word " * 26 + "`code`.") == ["27 words: " + "word " * 26 + "code"]


@pytest.mark.parametrize("name", TEXTS)
def test_no_sentence_is_too_long(name: str) -> None:
    assert long_ones(TEXTS[name]) == []


@pytest.mark.parametrize("name", TEXTS)
def test_no_retired_word_is_left(name: str) -> None:
    """docs/glossary.md has the words that stand in their place: partition, partial match, background, webhook."""
    assert {*RETIRED.findall(plain(TEXTS[name]).lower())} - ALLOWED.get(name, set()) == set()


@pytest.mark.parametrize("name", helps())
def test_help_is_whole_sentences(name: str) -> None:
    lines = TEXTS[name].split("\n\n")
    assert [line for line in lines if not (line[0].isupper() or line.startswith("epsparql")) or not line.endswith(".")] == []
