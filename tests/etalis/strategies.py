"""Random patterns of programs, and random streams of events with whole numbers."""

from hypothesis import strategies as st

from epsparql.etalis.streams import read_stream
from epsparql.ntriples import parse_term
from epsparql.terms import Iri, Literal
from tests.etalis.naive import Event
from verification.definitions.model import Occurrence

NAMES, OPERATORS = "abc", ("seq", "seq", "and", "par", "equals", "meets", "during", "starts", "finishes")
VARIABLES = ("X", "Y")


def atoms(names: tuple[str, ...]) -> st.SearchStrategy[str]:
    argument = st.sampled_from((*VARIABLES, "_", "1"))
    return st.builds(lambda name, x: f"{name}({x})", st.sampled_from(names), argument)


def patterns(names: tuple[str, ...]) -> st.SearchStrategy[str]:
    """Patterns in which X is bound everywhere."""
    plain = st.sampled_from([f"{name}(X)" for name in names])

    def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.one_of(
            st.builds(lambda x, op, y: f"({x} {op} {y})", inner, st.sampled_from(OPERATORS), inner | atoms(names)),
            st.builds(lambda x, y: f"({x} or {y})", inner, inner),
            st.builds(lambda x, y, z: f"(({x} seq {y}) cnot {z})", inner, inner, atoms(names)),
            st.builds(lambda x, z: f"({x} fnot {z})", inner, atoms(names)),
            st.builds(lambda x, n: f"({x}).{n}", inner, st.integers(0, 4)),
            st.builds(lambda x, y: f"({x} seq {y} star_times)", inner, atoms(names)),
            st.builds(lambda x: f"({x} ntimes 2)", inner),
            st.builds(lambda x, op, n: f"({x} where (X {op} {n}))", inner, st.sampled_from(("<", "=<", "=:=", "=\\=")), st.integers(0, 3)),
            st.builds(lambda x, n: f"({x} where (\\+ (X < {n} ; X =:= 0)))", inner, st.integers(0, 3)),
        )

    return st.recursive(plain, larger, max_leaves=4)


def aggregates(names: tuple[str, ...], functions: tuple[str, ...]) -> st.SearchStrategy[str]:
    """Return bodies that bind V: an aggregate over a pattern, maybe after an event, by X, or in a window."""
    return st.builds(
        lambda left, function, pattern, keys, window: f"{left}aggregate({function}, {pattern}, V{keys}{window})",
        st.sampled_from(("", "", "a(X) seq ", f"{names[-1]}(Z) seq ")),
        st.sampled_from(functions),
        patterns(names),
        st.sampled_from(("", "", ", group_by(X)")),
        st.sampled_from(("", ", rows(1)", ", rows(2)", ", rows(3)", ", range(1)", ", range(4)")),
    )


@st.composite
def streams(draw: st.DrawFn) -> list[Event]:
    one = st.builds(
        lambda name, x, start, length: (name, (x,), start, start + length),
        st.sampled_from(NAMES),
        st.integers(0, 2),
        st.integers(0, 7),
        st.sampled_from((0, 0, 1, 3)),
    )
    return draw(st.lists(one, min_size=1, max_size=7))


def written(events: list[Event]) -> str:
    return " ".join(f"event({name}({', '.join(map(str, args))}), [{start}, {end}])." for name, args, start, end in events)


def occurrences(events: list[Event]) -> list[Occurrence]:
    """The triples in which events come on a stream."""
    found = []
    for event in read_stream(written(events)):
        for triple in event.triples():
            s, p, o = map(parse_term, triple)
            assert isinstance(s, Iri)
            assert isinstance(p, Iri)
            assert isinstance(o, Iri | Literal)
            found.append(Occurrence((s, p, o), event.start, event.end))
    return found
