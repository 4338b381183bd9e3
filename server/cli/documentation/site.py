"""Builds the site: gathers the pages in a folder, corrects their links for it, and lets Zensical make HTML of them.

What GitHub shows and what Zensical shows differ in three points, which `_adapt_lines` evens out: lists and tables may
follow a paragraph at once, inner lists are indented by two spaces, and links may lead to files outside of docs/.
"""

import hashlib
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

import yaml

from server.cli.documentation.command_reference import write_command_page
from server.cli.documentation.http_reference import write_http_pages
from server.cli.documentation.python_reference import write_python_page

GATHERED = {
    "README.md": "index.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "ontologies/README.md": "project/ontologies.md",
    "clients/js/README.md": "reference/javascript.md",
    "openapi.yaml": "reference/openapi.yaml",
    "asyncapi.yaml": "reference/asyncapi.yaml",
}
"""Files outside of docs/ that the site has too, and where."""
_FOR_DEVELOPERS = "docs/decisions"
"""The folder of docs/ that the site leaves out. Its pages have reasons for those who change the code."""
_LINK = re.compile(r"(?P<text>\[[^\[\]]*\])\((?P<path>[^()\s#]*)(?P<anchor>#[^()\s]*)?\)")
_OUTSIDE = re.compile(r"[a-z][a-z0-9+.-]*:")
_LIST, _TABLE, _FENCE = re.compile(r"\s*([-*]|\d+\.) "), re.compile(r"\s*\|"), re.compile(r"\s*```")
_INLINE = re.compile(r"<script>(.*?)</script>", re.DOTALL)
_ARTICLE = re.compile(r"<article\b.*?</article>", re.DOTALL)
_PASSED_OVER = re.compile(r"<(pre|svg|button)\b.*?</\1>|<a class=\"headerlink\".*?</a>|<[^>]+>", re.DOTALL)
_WORDS_A_MINUTE = 200
_SEARCH = Path(__file__).with_name("search_worker.js")


class SiteFault(Exception):
    """Reports a page that the site cannot have; the message names the file and what is wrong."""


def build_site(root: Path, target: Path) -> None:
    """Build the site of the checkout at `root` into `target`, in place of what is there.

    Raises: SiteFault, also for a link that leads nowhere.
    """
    with tempfile.TemporaryDirectory(prefix="epsparql-docs-") as folder:
        stage = Path(folder)
        _gather(root, stage / "docs")
        shutil.copy(root / "docs" / "zensical.toml", stage)
        done = subprocess.run(
            [sys.executable, "-m", "zensical", "build", "--strict"],
            cwd=stage,
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"NO_COLOR": "1"},
        )
        if done.returncode != 0:
            raise SiteFault(f"zensical refuses the pages\n{done.stdout}{done.stderr}")
        _move_scripts(stage / "site")
        for page in (stage / "site").rglob("*.html"):
            page.write_text(add_reading_time(page.read_text(encoding="utf-8")), encoding="utf-8")
        _replace_search(stage / "site", root / "docs" / "search.toml")
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(stage / "site", target)


def _gather(root: Path, docs: Path) -> None:
    places = GATHERED | {path.relative_to(root).as_posix(): f"project/{path.name}" for path in sorted((root / "ontologies").glob("*.ttl"))}
    places |= {
        path.relative_to(root).as_posix(): path.relative_to(root / "docs").as_posix()
        for path in sorted((root / "docs").rglob("*"))
        if path.is_file() and path.suffix != ".toml" and path.parent != root / _FOR_DEVELOPERS
    }
    for source, place in places.items():
        target = docs / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.suffix == ".md":
            target.write_text(adapt_page(source, (root / source).read_text(encoding="utf-8"), places, root), encoding="utf-8")
        else:
            shutil.copy(root / source, target)
    document = yaml.load((root / "openapi.yaml").read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    pages = {f"http/{name}": text for name, text in write_http_pages(document).items()}
    for name, text in (pages | {"commands.md": write_command_page(), "python.md": write_python_page()}).items():
        target = docs / "reference" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


def adapt_page(source: str, text: str, places: dict[str, str], root: Path) -> str:
    """Return a page as Zensical reads it. Raises: SiteFault for a link to what is not there."""
    base, here = PurePosixPath(source).parent, PurePosixPath(places[source]).parent

    def correct(link: re.Match[str]) -> str:
        if not link["path"] or _OUTSIDE.match(link["path"]):
            return link[0]
        found = os.path.normpath(base / link["path"])
        place = places.get(found) or places.get(f"{found}/README.md")
        if place is not None:
            return f"{link['text']}({os.path.relpath(place, here)}{link['anchor'] or ''})"
        if not (root / found).exists():
            raise SiteFault(f"{source}: the link to {link['path']} leads nowhere")
        return link["text"].strip("[]")  # a file of the code

    return "\n".join(_adapt_lines(text, lambda line: _LINK.sub(correct, line))) + "\n"


def _adapt_lines(text: str, correct: Callable[[str], str]) -> Iterator[str]:
    fenced, before = False, ""
    for line in text.splitlines():
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            kind = _LIST if _LIST.match(line) else _TABLE if _TABLE.match(line) else None
            if kind is not None and before.strip() and not kind.match(before) and not before.startswith((" ", "#")):
                yield ""
            indent = len(line) - len(line.lstrip(" "))
            line = " " * indent * (2 if _LIST.match(line) else 1) + correct(line[indent:])
        before = line
        yield line


def add_reading_time(page: str) -> str:
    """Return a page of HTML that says below its title how many words it has, code apart, and how many minutes they
    take.
    """
    article = _ARTICLE.search(page)
    if article is None or "</h1>" not in article[0]:
        return page
    words = len(html.unescape(_PASSED_OVER.sub(" ", article[0])).split())
    minutes = -(-words // _WORDS_A_MINUTE)
    line = f"<p><small>{words:,} words, {minutes} minute{'s' if minutes > 1 else ''}</small></p>"
    return page[: article.start()] + article[0].replace("</h1>", f"</h1>{line}", 1) + page[article.end() :]


def _move_scripts(site: Path) -> None:
    """Move scripts out of the pages into files: the server's policy on its answers allows no others."""
    for page in site.rglob("*.html"):
        up = os.path.relpath(site, page.parent)

        def refer(script: re.Match[str], up: str = up) -> str:
            name = f"assets/javascripts/{hashlib.sha256(script[1].encode()).hexdigest()[:16]}.js"
            (site / name).write_text(script[1], encoding="utf-8")
            return f'<script src="{up}/{name}"></script>'

        page.write_text(_INLINE.sub(refer, page.read_text(encoding="utf-8")), encoding="utf-8")


def _replace_search(site: Path, known: Path) -> None:
    """Let our worker rank the sections: Zensical's demands every word of a question of each of them.

    The worker's words come with the index, from docs/search.toml.
    """
    index = json.loads((site / "search.json").read_text(encoding="utf-8"))
    index["config"] |= tomllib.loads(known.read_text(encoding="utf-8"))
    (site / "search.json").write_text(json.dumps(index, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")
    (worker,) = (site / "assets" / "javascripts" / "workers").glob("search.*.js")
    shutil.copy(_SEARCH, worker)
