"""Writes a query whose solutions are the violations of shapes, each in the words of SHACL's validation report.

Each constraint is an alternative of one UNION: the pattern of the target, the pattern of the path, and the negation of
what the constraint asks for. An error of an expression counts as a violation, as it does in SHACL.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

from epsparql.shapes.shapes_graph import SH, Constraint, Shape

VARIABLES = ("focus", "path", "value", "constraint", "message")
_XSD = "http://www.w3.org/2001/XMLSchema#"
_CAST = ("boolean", "date", "dateTime", "decimal", "double", "duration", "dayTimeDuration", "float", "integer", "time")
"""Datatypes whose literals a cast tells from those that are malformed."""
_RDF_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
_KINDS = {
    "BlankNode": "isBlank(?value)", "IRI": "isIRI(?value)", "Literal": "isLiteral(?value)", "BlankNodeOrIRI": "!isLiteral(?value)",
    "BlankNodeOrLiteral": "!isIRI(?value)", "IRIOrLiteral": "!isBlank(?value)",
}  # fmt: skip
_COMPARISONS = {"minExclusive": ">", "minInclusive": ">=", "maxExclusive": "<", "maxInclusive": "<=", "lessThan": "<", "lessThanOrEquals": "<="}


def write_violation_query(shapes: Sequence[Shape], stream: str | None = None) -> str:
    """Return the text of a SELECT whose solutions are the violations. `stream` is the name of the stream it reads."""
    alternatives = [f"  {{ {text} }}" for shape in shapes for text in _write_shape(shape)]
    if not alternatives:
        return ""
    source = "" if stream is None else f"FROM STREAM <{stream}> "
    return f"SELECT DISTINCT {' '.join(f'?{each}' for each in VARIABLES)} {source}WHERE {{\n" + "\n  UNION\n".join(alternatives) + "\n}\n"


def _write_shape(shape: Shape) -> Iterator[str]:
    for kind, iri in shape.targets:
        target = {
            "targetClass": f"?focus {_RDF_TYPE} {iri} .",
            "targetSubjectsOf": f"?focus {iri} ?any .",
            "targetObjectsOf": f"?any {iri} ?focus .",
        }[kind]
        for constraint in shape.constraints:
            for pattern in _write_constraint(shape.path, constraint):
                yield f"{target} {pattern} {_name_constraint(constraint.name, shape)}"
        if shape.closed is not None:
            other = " && ".join(f"?path != {each}" for each in shape.closed) or "true"
            yield f"{target} ?focus ?path ?value . FILTER({other}) {_name_constraint('closed', shape)}"


def _name_constraint(name: str, shape: Shape) -> str:
    """Return the BINDs that describe a violation."""
    component = f"<{SH}{name[0].upper()}{name[1:]}ConstraintComponent>"
    about = f'"sh:{name}"' if shape.message is None else shape.message
    path = "" if shape.path is None or name == "closed" else f"BIND({shape.path} AS ?path) "
    return f"{path}BIND({component} AS ?constraint) BIND({about} AS ?message)"


def _write_constraint(path: str | None, constraint: Constraint) -> Iterator[str]:
    """Yield the patterns of what violates a constraint."""
    name, arguments = constraint.name, constraint.arguments
    first = arguments[0] if arguments else ""
    value = "BIND(?focus AS ?value)" if path is None else f"?focus {path} ?value ."
    match name:
        case "minCount":
            if (least := _read_count(first)) > 0:
                yield f"FILTER NOT EXISTS {{ {_write_distinct(path, least)} }}"
        case "maxCount":
            yield _write_distinct(path, _read_count(first) + 1)
        case "hasValue":
            yield f"FILTER NOT EXISTS {{ ?focus {path} {first} }}"
        case "class":
            yield f"{value} FILTER NOT EXISTS {{ ?value {_RDF_TYPE} {first} }}"
        case "disjoint":
            yield f"{value} ?focus {first} ?value ."
        case "equals":
            for one, other in ((path, first), (first, path)):
                yield f"?focus {one} ?value . FILTER NOT EXISTS {{ ?focus {other} ?value }}"
        case "lessThan" | "lessThanOrEquals":
            yield f"{value} ?focus {first} ?other . FILTER(!COALESCE(?value {_COMPARISONS[name]} ?other, false))"
        case _:
            yield f"{value} FILTER(!COALESCE({_ASKED[name](arguments)}, false))"


def _read_count(text: str) -> int:
    return int(text[1:].partition('"')[0])


def _write_distinct(path: str | None, count: int) -> str:
    """Return a pattern of so many different values, which are compared in pairs."""
    values = [f"?value{k}" for k in range(count)]
    unequal = [f"!sameTerm({one}, {other})" for one, other in combinations(values, 2)]
    return f"?focus {path} {', '.join(values)} ." + (f" FILTER({' && '.join(unequal)})" if unequal else "")


def _write_datatype(arguments: Sequence[str]) -> str:
    (iri,) = arguments
    asked = f"isLiteral(?value) && datatype(?value) = {iri}"
    kind = iri[1:-1].removeprefix(_XSD)
    return f"{asked} && isLiteral({iri}(STR(?value)))" if kind in _CAST else asked


def _write_pattern(arguments: Sequence[str]) -> str:
    return f"!isBlank(?value) && REGEX(STR(?value), {', '.join(arguments)})"


def _write_languages(arguments: Sequence[str]) -> str:
    return "isLiteral(?value) && (" + " || ".join(f"LANGMATCHES(LANG(?value), {each})" for each in arguments or ('""',)) + ")"


_ASKED: dict[str, Callable[[Sequence[str]], str]] = {
    "datatype": _write_datatype,
    "in": lambda arguments: " || ".join(f"sameTerm(?value, {each})" for each in arguments) or "false",
    "languageIn": _write_languages,
    "maxLength": lambda arguments: f"!isBlank(?value) && STRLEN(STR(?value)) <= {arguments[0]}",
    "minLength": lambda arguments: f"!isBlank(?value) && STRLEN(STR(?value)) >= {arguments[0]}",
    "nodeKind": lambda arguments: _KINDS.get(arguments[0][1:-1].removeprefix(SH), "true"),
    "pattern": _write_pattern,
    **{
        name: lambda arguments, operator=operator: f"?value {operator} {arguments[0]}"  # type: ignore[misc]  # mypy does not infer lambdas with defaults
        for name, operator in _COMPARISONS.items()
        if not name.startswith("less")
    },
}
"""For each constraint on a value, what the value has to meet."""
