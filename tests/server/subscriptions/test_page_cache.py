"""Pages of solutions, which all followers of a query share."""

import asyncio
import tracemalloc
from contextlib import closing
from pathlib import Path

from engine.messages import Register
from pipeline.log import LogWriter
from pipeline.registrations.query_cache import get_shape
from pipeline.solutions.json_encoder import Envelope
from pipeline.solutions.solution_log import SolutionReader, SolutionWriter, solution_id
from server.process import clock
from server.query_output.notifier import Notifier
from server.query_output.page_cache import Notice, Page
from server.query_output.query_output import QueryOutput
from server.registrations.catalog_view import CatalogView
from tests.support.logs import solutions

FRAMES, MOST_BYTES = 80, 12 << 20
TEXT = "SELECT ?s FROM STREAM <x:s> WHERE { ?s ?p ?o }"
LONG = f'"{"x" * (256 << 10)}"'


def test_a_page_of_one_query_keeps_no_solutions_of_others(tmp_path: Path) -> None:
    with LogWriter(tmp_path, clock) as log, closing(SolutionReader(tmp_path)) as reader, closing(SolutionWriter(tmp_path)) as writer:
        log.append(lambda offset: Register(offset, "q0", TEXT))
        log.append(lambda offset: Register(offset, "q1", TEXT))
        pages = QueryOutput(CatalogView(log, reader), Notifier(log, reader), reader).get_pages(log.catalogue.queries["q0"], Envelope.LINE)

        async def follow() -> list[Page | Notice]:
            found = []
            for number in range(FRAMES):
                writer.commit(number, number + 1, solutions((0, number, number, ["<x:a>"]), (1, number, number, [LONG])))
                found.append((await pages.get_page_after(solution_id(number - 1, 0), number))[0])
            return found

        get_shape(TEXT)  # loads the grammar
        tracemalloc.start()
        found = asyncio.run(follow())
        kept, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert [page.last for page in found] == [solution_id(number, 0) for number in range(FRAMES)]
    assert kept < MOST_BYTES
