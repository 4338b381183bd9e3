"""The W3C's RDF 1.2 suites: the background reads each file as the suite says, and the stream of events agrees."""

import pyoxigraph as ox
import pytest

from pipeline.errors import FormatError
from pipeline.formats.batches.batch_builder import Interval
from pipeline.formats.body_parser import media_type_of, parse_body, read_statements
from tests.w3c.passed_over import RDF_PASSED_OVER
from tests.w3c.rdf_cases import RDF_12, RdfCase, rdf_cases

pytestmark = pytest.mark.skipif(not RDF_12.exists(), reason="the W3C suites are not beside the project")
DEFAULT = Interval(5, 7)
LINES = [case for case in rdf_cases() if case.path.suffix in (".nt", ".nq")]


@pytest.mark.parametrize("case", rdf_cases(), ids=lambda case: case.id)
def test_case(case: RdfCase) -> None:
    found = case.fault()
    if case.id in RDF_PASSED_OVER:
        assert found is not None, f"{case.id} passes now: take it off the list in passed_over.py"
    else:
        assert found is None, found


@pytest.mark.parametrize("case", LINES, ids=lambda case: case.id)
def test_events_of_lines(case: RdfCase) -> None:
    """The compiled scanner and the exact path take what the suite calls valid, refuse the rest, and give the same rows."""
    body, fmt = case.path.read_bytes(), ox.RdfFormat.N_QUADS if case.path.suffix == ".nq" else ox.RdfFormat.N_TRIPLES
    if case.kind == "negative":
        with pytest.raises(FormatError):
            parse_body(body, media_type_of(case.path), default=DEFAULT, arrived=0)
    else:
        found = parse_body(body, media_type_of(case.path), default=DEFAULT, arrived=0).to_pylist()
        assert found == read_statements(body, fmt, DEFAULT).to_pylist()


def test_enough_pass() -> None:
    assert len(RDF_PASSED_OVER) <= 0.02 * len(rdf_cases())
    assert set(RDF_PASSED_OVER) <= {case.id for case in rdf_cases()}
