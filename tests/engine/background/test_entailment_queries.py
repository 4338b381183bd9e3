"""Queries of every kind over what streams entail while the background changes: the engine against the reference
evaluator.
"""

from hypothesis import assume, given, note
from hypothesis import strategies as st

from epsparql.solutions.policies import CHRONOLOGICAL, RECENT, UNRESTRICTED
from tests.engine.semantics.test_equivalence import RANDOM, accepted
from tests.reference.evaluator import Fact, Settings, Triple
from tests.support import query_strategies
from tests.support.background_timelines import CHANGES, SCHEMAS, TYPE, Step, Told, iri, told
from tests.support.feeds import show, term
from tests.support.run_both import blocks, results, run, run_oracle

GROUPS = st.one_of(
    query_strategies.shared(), st.sampled_from(("{ ?s a :A }", "{ ?s a :B }", "{ ?s a ?v }", "{ ?v a :A }", "{ ?s ?p :A }", "{ ?s a :C . ?s :q ?v }"))
)
VALUES = st.sampled_from([term(text) for text in ("x", "y", "A", "1", "2")])
STATEMENTS: st.SearchStrategy[Triple] = st.one_of(
    st.tuples(st.sampled_from([iri("x"), iri("y")]), st.sampled_from([iri(name) for name in "pqr"]), VALUES),
    st.tuples(st.sampled_from([iri("x"), iri("y")]), st.just(TYPE), st.sampled_from([iri(name) for name in "ABC"])),
)
STEPS = st.lists(
    st.builds(
        Step, st.integers(0, 2), st.lists(STATEMENTS, min_size=1, max_size=3).map(tuple), st.one_of(st.none(), CHANGES), st.sampled_from((0, 0, 1, 3)),
        st.integers(0, 2),
    ),
    min_size=2, max_size=6,
)  # fmt: skip
POLICIES = st.sampled_from((UNRESTRICTED, UNRESTRICTED, UNRESTRICTED, RECENT, CHRONOLOGICAL))


@RANDOM
@given(
    query=query_strategies.within(":g", GROUPS), schema=SCHEMAS, steps=STEPS, delay=st.integers(0, 2), policy=POLICIES,
    cuts=st.sets(st.integers(0, 12), max_size=3), restored=st.sets(st.integers(1, 4), max_size=2),
)  # fmt: skip
def test_queries_see_what_occurrences_entail_at_their_instants(
    query: str, schema: list[Fact], steps: list[Step], delay: int, policy: str, cuts: set[int], restored: set[int]
) -> None:
    queries = {"q": query}
    assume(accepted(queries))
    story = told(queries, schema, steps, delay, policy)
    explain(query, policy, story)
    ran = run(blocks(story.log, cuts), restore_before=restored)
    assert not ran.refused
    assert results(queries, ran.emitted) == run_oracle(queries, {"default": story.entailed}, settings={"q": Settings(policy)})


def explain(query: str, policy: str, story: Told) -> None:
    note(f"{policy}: {query}")
    for entry, occurrences in story.log:
        note(f"{entry} {show(occurrences)}")
    note(show(story.entailed))
