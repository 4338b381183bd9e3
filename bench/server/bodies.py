"""This bench posts mutated bodies of every format to a real server.

Each is taken or refused with a problem, nothing comes of a refused one, and memory stays.
"""

import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pyarrow as pa

from bench.measurement import WrongCount, line
from bench.server.load import started
from bench.server.processes import read_resident_mib
from epsparql.client import Client
from pipeline.log.encoding.arrow_ipc import stream_of
from server.child_server import Child

_AT = '"2026-01-01T00:00:01Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
_GENERATED, _STARTS, _ENDS = (
    "<http://www.w3.org/ns/prov#generatedAtTime>",
    "<http://streamreasoning.org/timeVocab#startsAtTime>",
    "<http://streamreasoning.org/timeVocab#endsAtTime>",
)
_TURTLE = (
    '@prefix : <http://e/> . :s :p "a\\u00e9"@en , 1.5 , true , [ :q ( :a _:b ) ] ; a :C . :t :p """long\n"text""" , "x"^^:d . '
    f"<http://e/m> {_GENERATED} {_AT} . GRAPHS"
)
_GRAPHS = f":g {{ :s :p _:b , 'q' . }} :g {_STARTS} {_AT} ; {_ENDS} {_AT} ."
_LINES = f'<http://e/s> <http://e/p> "a\\tb"@en-GB .\n_:b <http://e/p> <http://e/o#x> . # note\n<http://e/m> {_GENERATED} {_AT} .\n'
_QUADS = _LINES + f"<http://e/s> <http://e/p> _:b <http://e/g> .\n<http://e/g> {_GENERATED} {_AT} .\n"
_NDJSON = (
    '{"s":"<http://e/s>","p":"<http://e/p>","o":"\\"1\\"^^<http://www.w3.org/2001/XMLSchema#integer>","at":"2026-01-01T00:00:01.5Z"}\n'
    '{"s":"_:b","p":"<http://e/p>","o":"\\"\\u00e9\\\\n\\"@en","g":"<http://e/g>","start":"2026-01-01T00:00:01Z","end":"2026-01-01T00:00:02-01:00"}\n'
    '{"triples":"@prefix : <http://e/> . :s :p :o , [ :q 1 ] .","at":"2026-01-01T00:00:03Z"}\n'
)
_LD = json.dumps(
    {
        "@context": {"p": "http://e/p", "at": {"@id": _GENERATED[1:-1], "@type": "http://www.w3.org/2001/XMLSchema#dateTime"}},
        "@id": "http://e/g",
        "at": "2026-01-01T00:00:01Z",
        "@graph": [
            {"@id": "http://e/s", "@type": "http://e/C", "p": [1, True, {"@id": "_:b"}, {"@value": "x", "@language": "en"}, {"@list": ["a", 2.5]}]}
        ],
    }
)
_MESSAGES = "; version=1.2-messages"
PIECES = [b"<", b">", b'"', b"\\", b"\\u", b"\\ud800", b"\x00", b"\xff", b"\xc0\xaf", b"\xef\xbb\xbf", b"{", b"}", b"[", b"]", b"(", b")",
b".", b";", b",", b":", b"_:", b"^^", b"@",
          b"@prefix", b"MESSAGE", b"VERSION", b"<<", b">>", b"<<(", b"#", b"\n", b"\r", b" ", b"null", b"true", b"1e999", b"-0", b"9" * 40,
          b'"at"', b'"start"', b'"id"', b'"g"',
          b'"@context":"http://e/c"', b'"@id"', b'"@graph"', "é\U0001f600".encode(), b"2026-02-30T00:00:00Z", b"-292278-01-01T00:00:00Z",
          b"9999-12-31T24:00:00Z", b"a" * 300]  # fmt: skip


def _arrow() -> bytes:
    at = pa.array([1_767_225_600_000_000 + number for number in range(4)], pa.timestamp("us", "UTC"))
    terms = {"s": ["<http://e/s>"] * 4, "p": ["<http://e/p>"] * 4, "o": ['"1"', '"é"@en', "_:b", "<http://e/o>"]}
    table = pa.table(
        {name: pa.array(values).dictionary_encode() for name, values in terms.items()}
        | {"start": at, "end": at, "g": [None, None, "<http://e/g>", None]}
    )
    return bytes(stream_of(table))


def corpus() -> dict[str, bytes]:
    """Return a valid body of each media type."""
    turtle, trig = _TURTLE.replace("GRAPHS", ""), _TURTLE.replace("GRAPHS", _GRAPHS)
    texts = {
        "application/x-ndjson": _NDJSON,
        "application/n-triples": _LINES,
        "application/n-quads": _QUADS,
        "text/turtle": turtle,
        "application/trig": trig,
        "application/ld+json": _LD,
        f"application/n-quads{_MESSAGES}": f'VERSION "1.2-messages"\n{_QUADS}MESSAGE\n{_LINES}',
        f"application/trig{_MESSAGES}": f"{trig}\nMESSAGE\n:s :p _:b .\n@message .\n{_GRAPHS}",
    }
    return {media_type: text.encode() for media_type, text in texts.items()} | {"application/vnd.apache.arrow.stream": _arrow()}


def mutated(body: bytes, chance: random.Random) -> bytes:
    """Return the body with one to four stretches replaced, doubled, left out or flipped; a few bodies are cut short
    or made deep or long.
    """
    for _ in range(chance.choice((1, 1, 1, 2, 3, 4))):
        at, length = chance.randrange(len(body) + 1), chance.choice((0, 0, 1, 1, 3, 10, 40))
        piece = chance.choice(
            (chance.choice(PIECES), b"", bytes([chance.randrange(256)]), body[at : at + length] * 2, chance.choice(PIECES) * chance.randint(1, 200))
        )
        body = body[:at] + piece + body[at + length :]
    if chance.random() < 0.05:
        body = body[: chance.randrange(len(body) + 1)]
    if chance.random() < 0.01:
        at = chance.randrange(len(body) + 1)
        body = body[:at] + body[at : at + chance.randint(1, 8)] * 20_000 + body[at:]
    return body


def measure(n: int, seed: int = 2011) -> Iterator[str]:
    """Yield a line: what `n` bodies gave, by media type and status; the slowest answer; how much the server grew
    after the first fifth.
    """
    with started() as child:
        yield _posted(child, n, random.Random(seed), seed)


def _posted(child: Child, n: int, chance: random.Random, seed: int) -> str:
    client, bodies = Client(child.url), corpus()
    for media_type, body in bodies.items():
        client.send("valid", body, media_type)  # raises where it is refused
    found: Counter[str] = Counter()
    accepted, slowest_s, settled_mb = 0, 0.0, 0.0
    with closing(HTTPConnection(urlsplit(child.url).netloc, timeout=60)) as connection:
        for number in range(n):
            media_type = chance.choice(list(bodies))
            body = mutated(bodies[media_type], chance)
            began = time.perf_counter()
            connection.request("POST", "/streams/fuzzed/events", body, {"Content-Type": media_type})
            answer = connection.getresponse()
            content = answer.read()
            slowest_s = max(slowest_s, time.perf_counter() - began)
            if answer.status != 202 and not (400 <= answer.status < 500 and json.loads(content)["code"]):
                raise WrongCount(f"body {number} of seed {seed} ({media_type}: {answer.status} {content[:300]!r})", 1, 0)
            accepted += json.loads(content)["accepted"] if answer.status == 202 else 0
            found[f"{media_type} {answer.status}"] += 1
            if number == n // 5:
                settled_mb = read_resident_mib(child.pid)
    known = client.stream("fuzzed")["accepted"]
    if known != accepted:
        raise WrongCount("what was accepted of refused bodies", known, accepted)
    figures = {
        "accepted": accepted,
        "slowest_s": round(slowest_s, 3),
        "rss_mb": round(read_resident_mib(child.pid)),
        "grown_mb": round(read_resident_mib(child.pid) - settled_mb),
    }
    return line("bodies", n=n, seed=seed, **figures, found=dict(sorted(found.items())))
