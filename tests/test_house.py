"""Rules of the house that a machine can count (CONTRIBUTING.md).

Counts may only fall: who lowers one lowers its number here too.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.support.source_trees import statements_of
from tests.test_layers import circles

ROOT = Path(__file__).parent.parent
PACKAGES = ("epsparql", "verification", "connectors", "engine", "pipeline", "server", "bench", "tests")
MOST_FILES, AT_ALL = 12, 14
MOST_PARAMETERS = 7
MOST_FILES_OF_A_NAME = 4
MOST_WORDS, MOST_COLUMNS = 25, 120
PARAGRAPH = re.compile(r"\n\s*\n|\n\s*- ")
FRAGMENT = re.compile(r"(Of|What|As|By|Where|Those|To|Whether|From|In|With|Which|For)\b")

LARGE_FOLDERS = {
    "epsparql": "what users import, and what all packages share",
    "server/routes": "one file for each group of URLs",
    "server/cli/subcommands": "one file for each command, or for what its arguments ask for",
    "pipeline/log": "one file for each part of the log, which its writer or its reader composes",
    "pipeline/mapping": "one file for each part of a mapping's document, and for each format of rows",
    "pipeline/solutions": "one file for each index of the solution log, and for each format in which solutions are written",
    "pipeline/runners": "one file for each part of the loop that feeds engines, which a thread, tasks and the driver compose",
    "engine/rewrite": "a file for each step from the algebra as written to the algebra as planned",
    "engine/planner/operators": "a file for each operator of the language",
    "epsparql/translate": "a file for each clause of the language, and what they share",
    "engine/network": "one file for each part of a network, and one for each step of a change of the background",
    "pipeline/spark": "what knows Spark, and what its processes need beside it",
    "tests/support": "one file for each thing that tests of several packages share",
    "tests/epsparql": "one file for each part of the language that has no folder of its own",
    "tests/pipeline/formats": "one file for each format, and for what all formats keep to",
    "tests/browser": "one file for each page of the console, which share one browser",
}
"""Folders of more than 12 files, beside `__init__.py`, each with its reason."""
MOST_METHODS, MOST_FIELDS, MOST_LINES = 15, 10, 50
LARGE_CLASSES = {
    "engine/explain/model.py: Explanation": "all that is said of a query, for texts, charts and documents",
    "engine/runtime/query_registry.py: Registry": "what is asked of an engine's queries, as they stand together",
    "server/routes/streams/stream_settings.py: StreamSettings": "a document of the HTTP interface",
    "engine/messages.py: SetStream": "the settings of a stream, as the HTTP interface has them",
    "pipeline/log/catalog.py: Catalogue": "what follows from the log, with what would be looked for among all queries at each entry",
    "pipeline/mapping/mapping.py: Mapping": "its fields are the words of a mapping document",
    "connectors/systems.py: System": "a table's row: what each system is, and what its URLs may have",
    "engine/network/kernel_arrays.py: KernelArrays": "one table of arrays for the kernel: each change of one has to show in the table of addresses",
    "connectors/status.py: Status": "a connector's status under the names that the HTTP interface has for it",
    "server/http/problem_details.py: ProblemDocument": "a document of the HTTP interface",
    "server/routes/connectors.py: ConnectorDocument": "a document of the HTTP interface",
    "engine/aggregation/runs/run_tables.py: ElementColumns": "arrays that the sweep takes together, a row a moment",
    "engine/alpha/alpha_entailment.py: Postings": "arrays of one table for the kernel, which share their lifetime",
    "engine/background/fact_store.py: FactIndex": "one version of the background: what is asked of it is asked of the whole",
    "engine/dictionary/term_dictionary.py: TermTable": "one table of terms: every method needs its arrays as they stand",
    "engine/kernel/state/arrays.py: Net": "the kernel's arrays under the names by which compiled code finds them",
    "epsparql/etalis/parser/program.py: Program": "a program's clauses, a field for each kind",
    "epsparql/async_client.py: AsyncClient": "one method for each request that a client makes, under the name that users find in the reference",
    "engine/messages.py: Promote": "an entry of the log with the fields that clients give",
    "engine/messages.py: Register": "an entry of the log with the fields that clients give",
    "pipeline/log/writer_state.py: _State": "all that a start of the log's writer needs, in one file",
    "engine/network/placed_query.py: Planned": "what other files ask of a plan after its fragment is gone; what the client gave is RegisteredQuery",
    "engine/physical_plan/plan.py: Fragment": "one list for each of the kernel's tables, filled together while a query is planned",
    "engine/physical_plan/plan.py: Node": "a row of the kernel's table of nodes, column by column",
    "engine/planner/builder/plan_builder.py: PlanBuilder": "one method for each kind of row that an operator may add",
    "epsparql/client.py: Client": "one method for each thing that the HTTP interface offers",
    "pipeline/log/catalog.py: Registration": "stored in the catalog under these names",
    "pipeline/log/catalog.py: Version": "stored in the catalog under these names",
    "pipeline/log/catalog.py: Stream": "stored in the catalog under these names",
    "pipeline/replay/replay.py: Replay": "a field for each option of the command",
    "pipeline/solutions/solution_log.py: SolutionReader": "what is asked of one log, whose indexes and frames share their locks",
    "server/routes/reasons/provenance.py: StepDocument": "a document of the HTTP interface",
    "server/routes/queries.py: QuerySummary": "a document of the HTTP interface",
    "server/routes/queries.py: VersionDocument": "a document of the HTTP interface",
    "server/routes/trials.py: TrialDocument": "a document of the HTTP interface",
    "server/routes/webhooks.py: ObserverDocument": "a document of the HTTP interface",
    "server/routes/streams/stream_settings.py: StreamDocument": "a document of the HTTP interface",
    "server/settings.py: Settings": "a field for each setting, from which flags, variables and their page follow",
    "server/webhook_delivery/registrations.py: Webhook": "stored in the webhook's file under these names",
}
"""Classes outside of tests with more than 15 public methods or 10 fields, each with its reason."""
BASELINE = {
    "docstring sentences of more than 25 words": 4,
    "lines of docstrings of more than 120 columns": 41,
    "docstrings that begin like a fragment": 0,
    "class names twice in a package": 0,
    "functions of more than 7 parameters": 0,
    "function names in five or more files": 12,
}


@cache
def nodes() -> tuple[tuple[str, ast.AST], ...]:
    """Return the module and the statements of each file."""
    files = [file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py"))]
    return tuple((file.relative_to(ROOT).as_posix(), node) for file in files for node in statements_of(file))


def fragments() -> list[str]:
    """Return the docstrings that begin like a fragment of a sentence."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return [
        f"{file}: {text[:60]}" for file, node in nodes() if isinstance(node, kinds) and (text := ast.get_docstring(node)) and FRAGMENT.match(text)
    ]


def doubles() -> list[str]:
    """Return the public names that more than one class of a package has."""
    named = Counter((file.partition("/")[0], node.name) for file, node in nodes() if isinstance(node, ast.ClassDef) and not node.name.startswith("_"))
    return [f"{package}: {name}" for (package, name), times in named.items() if times > 1]


def wide() -> list[str]:
    """Return the functions of more than 7 parameters."""
    found = []
    for file, node in nodes():
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            names = [each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
            if len([name for name in names if name not in ("self", "cls")]) > MOST_PARAMETERS:
                found.append(f"{file}:{node.lineno}: {node.name}")
    return found


def protocols() -> set[tuple[str, str]]:
    """Return the methods that a Protocol declares, with its package: whatever has the interface has its names."""
    return {
        (file.partition("/")[0], method.name)
        for file, node in nodes()
        if isinstance(node, ast.ClassDef) and any(isinstance(base, ast.Name) and base.id == "Protocol" for base in node.bases)
        for method in node.body
        if isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef))
    }


def overused() -> list[str]:
    """Return the function names that stand in five or more files outside of tests: each says too little.

    The methods of an interface do not count.
    """
    declared = protocols()
    functions = (
        (file, node) for file, node in nodes() if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not file.startswith("tests/")
    )
    found = {(node.name, file) for file, node in functions if not node.name.startswith("__") and (file.partition("/")[0], node.name) not in declared}
    named = Counter(name for name, _ in found)
    return [f"{name}: {files} files" for name, files in named.most_common() if files > MOST_FILES_OF_A_NAME]


def docstrings() -> Iterator[tuple[str, int, str]]:
    """Yield each text of the code outside of tests that documents something, with its file and first line."""
    for file, node in nodes():
        body = getattr(node, "body", []) if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) else []
        for part in body if not file.startswith("tests/") else []:
            if isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant) and isinstance(part.value.value, str):
                yield file, part.lineno, part.value.value


def wordy() -> list[str]:
    """Return the sentences of docstrings that have too many words; a colon or semicolon ends one, and code is one word."""
    found = []
    for file, line, text in docstrings():
        for paragraph in PARAGRAPH.split(re.sub(r"`[^`]*`", "x", text)):
            sentences = re.split(r"(?<=[.:;!?])\s+", " ".join(paragraph.split()))
            found += [f"{file}:{line}: {sentence[:60]}" for sentence in sentences if len(sentence.split()) > MOST_WORDS]
    return found


def broad() -> list[str]:
    """Return the lines of docstrings that are too broad for prose; the formatter's width is for code."""
    return [f"{file}:{line + k}" for file, line, text in docstrings() for k, each in enumerate(text.split("\n")) if len(each) > MOST_COLUMNS]


COUNTED = {
    "docstring sentences of more than 25 words": wordy,
    "lines of docstrings of more than 120 columns": broad,
    "docstrings that begin like a fragment": fragments,
    "class names twice in a package": doubles,
    "functions of more than 7 parameters": wide,
    "function names in five or more files": overused,
}


@pytest.mark.parametrize("rule", COUNTED)
def test_counts_fall(rule: str) -> None:
    """A count above its baseline: mend what you added. One below: lower the baseline."""
    found = COUNTED[rule]()
    assert len(found) == BASELINE[rule], "\n".join([rule, *found])


def test_folders_are_small() -> None:
    """Files of Python count, `__init__.py` and `__main__.py` aside."""
    sizes = Counter(file.rpartition("/")[0] for file in {file for file, _ in nodes()} if not file.endswith(("/__init__.py", "/__main__.py")))
    large = {folder: size for folder, size in sizes.items() if size > MOST_FILES}
    assert large.keys() == LARGE_FOLDERS.keys()
    assert all(size <= AT_ALL for size in large.values()), large


def test_classes_are_small() -> None:
    large = set()
    for file, node in nodes():
        if isinstance(node, ast.ClassDef) and not file.startswith("tests/"):
            methods = [each for each in node.body if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)) and not each.name.startswith("_")]
            if len(methods) > MOST_METHODS or sum(isinstance(each, ast.AnnAssign) for each in node.body) > MOST_FIELDS:
                large.add(f"{file}: {node.name}")
    assert large == LARGE_CLASSES.keys()


def test_functions_are_short() -> None:
    functions = (
        (file, node) for file, node in nodes() if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not file.startswith("tests/")
    )
    assert [f"{file}: {node.name}" for file, node in functions if (node.end_lineno or 0) - node.lineno + 1 > MOST_LINES] == []


@pytest.mark.parametrize("file", sorted((ROOT / "engine" / "native" / "source").rglob("*.[ch]")), ids=lambda file: file.name)
def test_lines_and_functions_of_c_are_short(file: Path) -> None:
    lines, begin = file.read_text(encoding="utf-8").split("\n"), 0
    for number, line in enumerate(lines):
        assert len(line) <= 150, f"{file}:{number + 1}"
        if line.endswith("{") and not line.startswith((" ", "}")):
            begin = number
        assert line != "}" or number - begin < 50, f"{file}:{begin + 1}"


# ---------------------------------------------------------------- TypeScript
TYPESCRIPT = ("console/src", "clients/js/src")
MOST_LINES_OF_A_FILE = 350
GENERATED = ("clients/js/src/openapi.ts",)
_IMPORT = re.compile(r"^(?:import|export)\b[^;]*?\bfrom \"(\.[^\"]+)\"", re.MULTILINE)


def typescript_files(root: str) -> list[Path]:
    files = [file for file in sorted((ROOT / root).rglob("*")) if file.suffix in (".ts", ".tsx", ".css")]
    return [file for file in files if file.relative_to(ROOT).as_posix() not in GENERATED]


def find_imported(file: Path, path: str) -> Path | None:
    """Return the source that an import names: clients/js writes the suffix of what is built, and the console none."""
    target = (file.parent / path).resolve()
    found = (target.parent / f"{target.name.removesuffix('.js')}{suffix}" for suffix in (".ts", ".tsx"))
    return next((each for each in found if each.exists()), None)


def typescript_imports(root: str) -> dict[str, set[str]]:
    """Return the files of a tree that each file imports, by their paths in it."""
    base = ROOT / root
    return {
        file.relative_to(base).as_posix(): {
            target.relative_to(base).as_posix() for path in _IMPORT.findall(file.read_text(encoding="utf-8")) if (target := find_imported(file, path))
        }
        for file in typescript_files(root)
        if file.suffix != ".css"
    }


@pytest.mark.parametrize("root", TYPESCRIPT)
def test_typescript_is_in_small_folders_and_files(root: str) -> None:
    files = typescript_files(root)
    assert len(files) > 10
    folders = Counter(file.parent.relative_to(ROOT).as_posix() for file in files)
    assert {folder: size for folder, size in folders.items() if size > AT_ALL} == {}
    lengths = {file.name: len(file.read_text(encoding="utf-8").split("\n")) for file in files if file.suffix != ".css"}
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES_OF_A_FILE} == {}


@pytest.mark.parametrize("root", TYPESCRIPT)
def test_typescript_makes_no_circle(root: str) -> None:
    """Neither files nor folders do; a file that lies in no folder counts as one."""
    files = typescript_imports(root)
    assert sum(map(len, files.values())) > 10
    assert circles(files) == []
    folders: dict[str, set[str]] = {}
    for file, targets in files.items():
        unit = unit_of_typescript(file)
        folders.setdefault(unit, set()).update(each for target in targets if (each := unit_of_typescript(target)) != unit)
    assert circles(folders) == []


def unit_of_typescript(file: str) -> str:
    return file.partition("/")[0]


def test_names_are_imported_one_by_one() -> None:
    assert {file for file, node in nodes() if isinstance(node, ast.ImportFrom) and node.names[0].name == "*"} == set()


GUIDED = ("engine/native/source/kernel", "engine/network", "engine/background")
PAGES = ("CONTRIBUTING.md", "docs/ARCHITECTURE.md", *(f"{package}/README.md" for package in (*PACKAGES, "console", *GUIDED)))
NAMED = re.compile(r"`([\w./]+(?:\.py|/|\.md|\.tsx|\.yaml))`")


@pytest.mark.parametrize("page", PAGES)
def test_pages_name_files_that_exist(page: str) -> None:
    """A page names a file from the root, from its own folder, or (the map) from a package."""
    bases = [ROOT, (ROOT / page).parent, *(ROOT / package for package in (*PACKAGES, "console"))]
    missing = [name for name in NAMED.findall((ROOT / page).read_text(encoding="utf-8")) if not any((base / name).exists() for base in bases)]
    assert missing == []


def test_the_makefile_names_tests_that_exist() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    names = re.findall(r"\b(?:tests/)?[\w/]+/test_\w+\.py", text)
    assert len(names) > 10
    assert [name for name in names if not any((ROOT / base / name).exists() for base in (".", "tests/engine"))] == []


def test_the_glossary_stays_short() -> None:
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \| [^|]+ \|$", (ROOT / "docs/glossary.md").read_text(encoding="utf-8"), re.MULTILINE)
    words = [word for word in rows if word not in ("word", "---")]
    assert 40 <= len(words) <= 60
    assert len(set(words)) == len(words)
