"""The cases of the community group's "RDF Messages Tests" (living draft of August 2026): what each body's messages are.

Contexts of schema.org are written out, since nothing is fetched.
"""

import pytest

from pipeline.errors import FormatError
from pipeline.formats.body_parser import N_QUADS, N_TRIPLES, NDJSON_LD, TRIG, TURTLE, Interval, media_type_of, parse_body
from pipeline.formats.rdf.rdf_messages import split

EX = "http://example.org/"
VERSION = 'VERSION "1.2-messages"\n'
Row = tuple[str, str, str, str | None]


def spo(number: str, graph: str | None = None) -> Row:
    return f"<{EX}s{number}>", f"<{EX}p>", f"<{EX}o{number}>", graph


def line(number: str) -> str:
    return f"<{EX}s{number}> <{EX}p> <{EX}o{number}> .\n"


def rows(body: str, media_type: str) -> list[Row]:
    found = parse_body(body.encode(), media_type, default=Interval(5, 5), arrived=0).to_pylist()
    return [(row["s"], row["p"], row["o"], row["g"]) for row in found]


CASES = [
    pytest.param(VERSION + line("1"), [[spo("1")]], id="a single message without delimiter"),
    pytest.param(VERSION + line("1") + "MESSAGE\n" + line("2"), [[spo("1")], [spo("2")]], id="two messages"),
    pytest.param(VERSION + "MESSAGE\n" + line("1"), [[], [spo("1")]], id="an empty first message"),
    pytest.param(VERSION + line("1") + "MESSAGE\nMESSAGE\n" + line("2"), [[spo("1")], [], [spo("2")]], id="an empty message between others"),
    pytest.param(VERSION + line("1") + "MESSAGE\n", [[spo("1")]], id="a final delimiter"),
    pytest.param(VERSION.replace("1.2", "1.1") + line("1") + "MESSAGE\n" + line("2"), [[spo("1")], [spo("2")]], id="version 1.1-messages"),
]
TURTLE_CASES = [
    pytest.param(
        f'@version "1.2-messages" .\n@prefix ex: <{EX}> .\n\nex:s1 ex:p ex:o1 .\n@message .\nex:s2 ex:p ex:o2 .\n',
        TURTLE,
        [spo("1"), spo("2")],
        id="two messages with @message",
    ),
    pytest.param(
        VERSION + line("1").replace(" .", f" <{EX}g1> .") + "MESSAGE\n" + line("2").replace(" .", f" <{EX}g2> ."),
        N_QUADS,
        [spo("1", f"<{EX}g1>"), spo("2", f"<{EX}g2>")],
        id="N-Quads keep graph names",
    ),
    pytest.param(
        f"{VERSION}PREFIX ex: <{EX}>\nex:s1 ex:p ex:o1 .\nex:g {{\n ex:s2 ex:p ex:o2 .\n ex:s3 ex:p ex:o3 .\n}}\nMESSAGE\nex:s4 ex:p ex:o4 .\n",
        TRIG,
        [spo("1"), spo("2", f"<{EX}g>"), spo("3", f"<{EX}g>"), spo("4")],
        id="default and named graphs",
    ),
    pytest.param(
        f"{VERSION}PREFIX ex: <{EX}one/>\nex:s ex:p ex:o .\nMESSAGE\nPREFIX ex: <{EX}two/>\nex:s ex:p ex:o .\n",
        TURTLE,
        [(f"<{EX}{n}/s>", f"<{EX}{n}/p>", f"<{EX}{n}/o>", None) for n in ("one", "two")],
        id="repeated prefixes",
    ),
    pytest.param(f"{VERSION}<{EX}g> {{\n{line('1')}}}\nMESSAGE\n{line('2')}", TRIG, [spo("1", f"<{EX}g>"), spo("2")], id="a boundary after a graph"),
]
ERRORS = [
    pytest.param(line("1") + "MESSAGE\n", id="a delimiter without message support"),
    pytest.param(f"{VERSION}{line('1')}@message <{EX}invalid>\n", id="@message without a full stop"),
    pytest.param(f"{VERSION}<{EX}g> {{\n{line('1')}MESSAGE\n{line('2')}}}\n", id="a delimiter in a graph"),
]


@pytest.mark.parametrize(("body", "messages"), CASES)
@pytest.mark.parametrize("announced", [True, False], ids=["by the media type", "by the body"])
@pytest.mark.parametrize("media_type", [TURTLE, TRIG, N_TRIPLES, N_QUADS])
def test_messages(body: str, messages: list[list[Row]], announced: bool, media_type: str) -> None:
    assert rows(body, media_type + ("; version=1.2-messages" if announced else "")) == [row for message in messages for row in message]
    assert [bool(message.text) for message in split(body.encode())] == [bool(message) for message in messages]


@pytest.mark.parametrize(("body", "media_type", "expected"), TURTLE_CASES)
def test_messages_of_a_syntax(body: str, media_type: str, expected: list[Row]) -> None:
    assert rows(body, media_type) == expected


def test_blank_nodes_are_those_of_their_message() -> None:
    first, second = rows(f"{VERSION}_:b0 <{EX}p> <{EX}o1> .\nMESSAGE\n_:b0 <{EX}p> <{EX}o2> .\n", N_TRIPLES)
    assert first[0].startswith("_:")
    assert second[0].startswith("_:")
    assert first[0] != second[0]


@pytest.mark.parametrize("body", ERRORS)
def test_errors(body: str) -> None:
    with pytest.raises(FormatError):
        rows(body, TRIG)


SCHEMA, OTHER = '{"@vocab": "https://schema.org/"}', '{"@vocab": "https://example.org/other-vocab/"}'


def about(body: str) -> list[list[tuple[str, str]]]:
    """Predicate and object of each subject, which are blank nodes here."""
    by_subject: dict[str, list[tuple[str, str]]] = {}
    for s, p, o, _ in rows(body, NDJSON_LD):
        by_subject.setdefault(s, []).append((p.rsplit("/", 1)[1].rstrip(">").rpartition("#")[2] or p, o))
    return [sorted(each) for each in by_subject.values()]


class TestLines:
    def test_a_context_is_for_the_messages_after_it(self) -> None:
        body = f'{{"@context": {SCHEMA}}}\n{{"@type": "Product", "name": "Hairdryer DRY 2000"}}\n{{"@context": {OTHER}}}\n{{"@type": "OtherType", "name": "Piotr"}}\n'
        first, second = about(body)
        assert ("type", "<https://schema.org/Product>") in first
        assert ("type", "<https://example.org/other-vocab/OtherType>") in second

    def test_an_empty_message_changes_no_context(self) -> None:
        (only,) = about(f'{{"@context": {SCHEMA}}}\n{{}}\n{{"@type": "Product", "color": "black"}}\n')
        assert ("type", "<https://schema.org/Product>") in only

    def test_a_context_of_a_message_is_its_own(self) -> None:
        body = (
            '{"@context": {"ex": "https://example.org/base/", "name": "ex:baseName"}}\n'
            '{"@context": {"label": "ex:label"}, "@id": "ex:a", "name": "Alice", "label": "A"}\n'
            '{"@id": "ex:b", "name": "Bob", "label": "B"}\n'
        )
        base = "https://example.org/base/"
        assert sorted(rows(body, NDJSON_LD)) == [
            (f"<{base}a>", f"<{base}baseName>", '"Alice"', None),
            (f"<{base}a>", f"<{base}label>", '"A"', None),
            (f"<{base}b>", f"<{base}baseName>", '"Bob"', None),
        ]

    def test_no_context_is_needed(self) -> None:
        body = '{"@id": "https://example.org/p1", "@type": "https://example.org/Product"}'
        assert [row[2] for row in rows(body, NDJSON_LD)] == ["<https://example.org/Product>"]
        assert media_type_of("log.ndjsonld") == NDJSON_LD

    @pytest.mark.parametrize(
        ("body", "message", "place"),
        [
            pytest.param('{"@id": "x:a", "x:p": 1}\n\n{}\n', "no JSON object", (2, 1), id="a blank line"),
            pytest.param('{"@id": "x:a", "x:p": 1}\n[1]\n', "no JSON object", (2, 1), id="an array"),
            pytest.param('{"@context": "https://schema.org/"}\n{"@id": "x:a", "name": 1}\n', "nothing is fetched", (2, None), id="a remote context"),
            pytest.param('{"@context": {"p": "x:p"}}\n{"@id": "x:a", "p": {"@value": []}}\n', "value", (2, None), id="bad JSON-LD"),
        ],
    )
    def test_faults_are_told(self, body: str, message: str, place: tuple[int, int | None]) -> None:
        with pytest.raises(FormatError, match=message) as fault:
            rows(body, NDJSON_LD)
        assert fault.value.line == place[0]
        assert place[1] is None or fault.value.column == place[1]

    def test_what_goes_on_is_bounded(self) -> None:
        context = f'{{"@context": {{"p": "x:{"p" * 20_000}"}}}}\n'
        with pytest.raises(FormatError, match="several bodies"):
            rows(context + '{"@id": "x:a"}\n' * 1_000, NDJSON_LD)
