"""Names the queries of a chain's first operands, which are registered beside it
(docs/decisions/0080-partial-matches-in-words.md).
"""

import epsparql
from pipeline.log.catalog import Registration
from pipeline.registrations.query_cache import write_first_operands
from server.http.problem_details import bad_request
from server.registrations.catalog_view import CatalogView

_MOST_OPERANDS = 1000


def name_companion(name: str, n: int) -> str:
    return f"{name}~{n}"


def write_companion(name: str, text: str, n: int) -> str:
    """Return the text of the query of a chain's first `n` operands.

    Raises: Fault 400 where they are no part of the chain by themselves.
    """
    found = write_first_operands(text, n)
    if found is None:
        detail = f"the first {n} operands of {name!r} are no part of a chain by themselves"
        raise bad_request("no-first-operands", detail, expected="a chain of more operands, the first of them not in braces of their own", query=name)
    return found


def find_companions(registration: Registration, catalog: CatalogView) -> list[Registration]:
    """Return the registered queries of a chain's first operands, by their names and texts; the order is that of
    registration.
    """
    most = min(len(registration.text), _MOST_OPERANDS)  # an operand has a character at least
    named = {name_companion(registration.name, n): n for n in range(1, most)}
    found = [query for query in catalog.list_some(named) if _is_companion(registration, query, named[query.name])]
    return sorted(found, key=lambda query: query.registered)


def _is_companion(registration: Registration, query: Registration, n: int) -> bool:
    try:
        text = write_first_operands(registration.text, n)
        return text is not None and epsparql.parse(text).query == epsparql.parse(query.text).query
    except epsparql.QueryError:  # another version took one of the texts
        return False
