"""Reads the shapes of a shapes graph, and tells what the queries written from them do not cover.

Source: https://www.w3.org/TR/shacl/
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from epsparql.deferred_methods import dataclass

if TYPE_CHECKING:
    import pyoxigraph as ox

SH = "http://www.w3.org/ns/shacl#"
_RDF, _RDFS = "http://www.w3.org/1999/02/22-rdf-syntax-ns#", "http://www.w3.org/2000/01/rdf-schema#"
_TYPE, _CLASS = f"{_RDF}type", f"{_RDFS}Class"
MOST_COUNT = 8
"""A minCount or maxCount has at most this value, because a query compares so many values with each other."""

ON_VALUES = (
    "class", "datatype", "in", "languageIn", "maxExclusive", "maxInclusive", "maxLength", "minExclusive", "minInclusive", "minLength", "nodeKind",
    "pattern",
)  # fmt: skip
"""Constraints that each value of a path has to meet, or the node itself where a shape has no path."""
ON_PATHS = ("disjoint", "equals", "hasValue", "lessThan", "lessThanOrEquals", "maxCount", "minCount")
TARGETS = ("targetClass", "targetObjectsOf", "targetSubjectsOf")
_LISTS = ("in", "languageIn", "ignoredProperties")
_LITERALS = (
    "flags",
    "languageIn",
    "maxCount",
    "maxExclusive",
    "maxInclusive",
    "maxLength",
    "minCount",
    "minExclusive",
    "minInclusive",
    "minLength",
    "pattern",
)
_BESIDE = (
    "path",
    "property",
    "message",
    "severity",
    "deactivated",
    "name",
    "description",
    "order",
    "group",
    "defaultValue",
    "flags",
    "closed",
    "ignoredProperties",
)
_KNOWN = {*ON_VALUES, *ON_PATHS, *TARGETS, *_BESIDE}


class ShapesFault(ValueError):
    """Signals a shapes graph that cannot be read; the message names the place and the remedy."""


@dataclass(frozen=True, slots=True)
class NotCovered:
    """Names a part of a shape that no query is written for, and why."""

    shape: str
    what: str

    def __str__(self) -> str:
        return f"{self.shape}: {self.what}"


@dataclass(frozen=True, slots=True)
class Constraint:
    """Holds a constraint by its name in SHACL's namespace, with its arguments as N-Triples texts."""

    name: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """Holds the targets of a node shape, its path (None for the node itself), its constraints and its message.

    Targets are pairs of a kind of TARGETS and an IRI in `<>`. A `closed` shape names the properties that a node may
    have.
    """

    targets: tuple[tuple[str, str], ...]
    path: str | None
    constraints: tuple[Constraint, ...]
    message: str | None = None
    closed: tuple[str, ...] | None = None


def read_shapes(text: bytes, name: str) -> tuple[list[Shape], list[NotCovered]]:
    """Return the shapes of a graph in Turtle, and what is not covered. Raises: ShapesFault."""
    import pyoxigraph as ox

    try:
        quads = list(ox.parse(text, ox.RdfFormat.TURTLE, base_iri="urn:shapes:"))
    except SyntaxError as fault:
        raise ShapesFault(f"{name}: {fault}; shapes are written in Turtle") from None
    graph = _ShapesGraph(quads)
    shapes = [shape for node in graph.find_node_shapes() for shape in graph.read_node_shape(node)]
    if not shapes and not graph.not_covered:
        raise ShapesFault(f"{name}: no shape has a target; give sh:targetClass, sh:targetSubjectsOf or sh:targetObjectsOf")
    return shapes, graph.not_covered


class _ShapesGraph:
    """Looks up the statements of a shapes graph."""

    def __init__(self, quads: Sequence["ox.Quad"]) -> None:
        self._objects: Mapping[object, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
        for quad in quads:
            self._objects[quad.subject][quad.predicate.value].append(quad.object)
        self.not_covered: list[NotCovered] = []

    def _get_objects(self, node: object, predicate: str) -> list[Any]:
        found = self._objects.get(node)
        return [] if found is None else found.get(predicate, [])

    def _find_objects(self, node: object, name: str) -> list[Any]:
        return self._get_objects(node, SH + name)

    def _is_true(self, node: object, name: str) -> bool:
        return any(str(each).startswith(('"true"', '"1"')) for each in self._find_objects(node, name))

    def find_node_shapes(self) -> Iterator[object]:
        """Yield the active shapes with targets, in the order of the text."""
        for node, statements in list(self._objects.items()):
            is_target = any(predicate.startswith(f"{SH}target") for predicate in statements) or self._is_class(node)
            if is_target and not self._is_true(node, "deactivated"):
                yield node

    def _is_class(self, node: object) -> bool:
        """Return whether a shape is a class, too, whose instances it describes."""
        kinds = {getattr(kind, "value", "") for kind in self._get_objects(node, _TYPE)}
        return _CLASS in kinds and bool(kinds & {f"{SH}NodeShape", f"{SH}PropertyShape"})

    def read_node_shape(self, node: object) -> Iterator[Shape]:
        """Yield what a shape says of its nodes, and what each of its property shapes says of a path."""
        targets = tuple((kind, str(each)) for kind in TARGETS for each in self._find_objects(node, kind))
        if self._is_class(node):
            targets += (("targetClass", str(node)),)
        if not targets:
            self._leave_out(node, "sh:targetNode and targets of SPARQL")
            return
        yield from self._read_constraints(node, targets)
        for each in self._find_objects(node, "property"):
            if not self._is_true(each, "deactivated"):
                yield from self._read_constraints(each, targets)

    def _read_constraints(self, node: object, targets: tuple[tuple[str, str], ...]) -> Iterator[Shape]:
        paths = self._find_objects(node, "path")
        path = str(paths[0]) if paths else None
        if path is not None and not path.startswith("<"):
            self._leave_out(node, "a path that is not one property")
            return
        self._name_unknown(node, nested=path is not None)
        names = ON_VALUES if path is None else (*ON_VALUES, *ON_PATHS)
        constraints = (self._read_constraint(node, name, each) for name in names for each in self._find_objects(node, name))
        messages = [str(each) for each in self._find_objects(node, "message")]
        yield Shape(
            targets, path, tuple(each for each in constraints if each is not None), messages[0] if messages else None, self._read_closed(node)
        )

    def _name_unknown(self, node: object, *, nested: bool) -> None:
        """Name each part that is not covered; a property of a property is one."""
        for predicate in self._objects.get(node, ()):
            name = predicate.removeprefix(SH)
            if predicate.startswith(SH) and (name not in _KNOWN or (name == "property" and nested)) and not name.startswith("target"):
                self._leave_out(node, f"sh:{name}")

    def _read_constraint(self, node: object, name: str, value: Any) -> Constraint | None:
        """Return a constraint; None where it is not covered."""
        values = self._read_list(value) if name in _LISTS else [value]
        texts = tuple(map(str, values))
        lacking = ""
        if name in ("minCount", "maxCount") and not _is_count(texts[0]):
            lacking = f"of other values than 0 to {MOST_COUNT}"
        elif any(text.startswith("_:") for text in texts):
            lacking = "with a blank node"
        elif name in _LITERALS and not all(text.startswith('"') for text in texts):
            lacking = "with a value that is no literal"
        if lacking:
            self._leave_out(node, f"sh:{name} {lacking}")
            return None
        if name == "pattern":
            texts += tuple(str(flag) for flag in self._find_objects(node, "flags")[:1])
        return Constraint(name, texts)

    def _read_closed(self, node: object) -> tuple[str, ...] | None:
        """Return the properties that a closed shape allows; None for one that is open."""
        if not self._is_true(node, "closed"):
            return None
        named = [path for each in self._find_objects(node, "property") for path in self._find_objects(each, "path")]
        ignored = [member for each in self._find_objects(node, "ignoredProperties") for member in self._read_list(each)]
        return tuple(dict.fromkeys(str(each) for each in (*named, *ignored) if str(each).startswith("<")))

    def _read_list(self, node: Any) -> list[Any]:
        """Return the members of an RDF list; a list that leads back to itself ends there."""
        members, passed = [], set[object]()
        while node not in passed and (firsts := self._get_objects(node, f"{_RDF}first")):
            passed.add(node)
            members.append(firsts[0])
            node = next(iter(self._get_objects(node, f"{_RDF}rest")), node)
        return members

    def _leave_out(self, node: object, what: str) -> None:
        path = next((f" (path {each})" for each in self._find_objects(node, "path")), "")
        self.not_covered.append(NotCovered(f"{node}{path}", what))


def _is_count(text: str) -> bool:
    lexical = text[1:].partition('"')[0]
    return text.startswith('"') and lexical.isdigit() and int(lexical[:9]) <= MOST_COUNT
