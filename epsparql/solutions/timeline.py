"""This module shows solutions in a notebook: a table, and above it a timeline as an SVG picture.

Both have a bound, which the text names.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from html import escape

from epsparql.python_values import python_value
from epsparql.solutions.solution import Solution, term_of
from epsparql.terms import Iri, Literal, Term

ROWS, BARS = 50, 60
"""At most this many rows and bars are shown."""
_LONGEST_CELL = 200
_WIDTH, _MARGIN, _STEP = 640, 8, 9  # in pixels
_TEXT = 'font-family="sans-serif" font-size="10" fill="#666"'


def html_of(solutions: Sequence[Solution]) -> str:
    """Return a picture and a table of the first solutions, as HTML in which all texts of the solutions are escaped."""
    if not solutions:
        return "<p>No solutions.</p>"
    names = list(dict.fromkeys(name for solution in solutions[:ROWS] for name in _cells_of(solution)))
    head = "".join(f"<th>{escape(name)}</th>" for name in ("start", "end", *names))
    rows = "".join(_row_of(solution, names) for solution in solutions[:ROWS])
    more = f"<p>The table shows {ROWS} of {len(solutions):,} solutions.</p>" if len(solutions) > ROWS else ""
    return f"{svg_of(solutions)}<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"


def svg_of(solutions: Sequence[Solution]) -> str:
    """Return the intervals of the first solutions as bars over time, an instant as a dot; "" where one lies beyond
    the years 1 to 9999.
    """
    shown = solutions[:BARS]
    intervals = [interval for each in shown for interval in _interval_of(each)]
    if not shown or len(intervals) < len(shown):
        return ""
    first, last = min(start for start, _ in intervals), max(end for _, end in intervals)
    scale = (_WIDTH - 2 * _MARGIN) / (_micros(last - first) or 1)
    height = _STEP * len(intervals) + 28
    places = [(_MARGIN + scale * _micros(start - first), _MARGIN + scale * _micros(end - first)) for start, end in intervals]
    marks = "".join(_mark_of(place, line, solution) for line, (place, solution) in enumerate(zip(places, shown, strict=True)))
    left = f'<text x="{_MARGIN}" y="{height - 6}" {_TEXT}>{escape(_moment_text(first))}</text>'
    right = f'<text x="{_WIDTH - _MARGIN}" y="{height - 6}" text-anchor="end" {_TEXT}>{escape(_moment_text(last))}</text>'
    axis = f'<line x1="{_MARGIN}" x2="{_WIDTH - _MARGIN}" y1="{height - 18}" y2="{height - 18}" stroke="#999"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" role="img" aria-label="The intervals of {len(shown)} solutions">'
        f"{marks}{axis}{left}{right}</svg>"
    )


def _mark_of(place: tuple[float, float], line: int, solution: Solution) -> str:
    (left, right), middle = place, _STEP * line + _STEP
    title = f"<title>{escape(solution.start)} to {escape(solution.end)}</title>"
    if right - left < 1:
        return f'<circle cx="{left:.1f}" cy="{middle}" r="3" fill="#2563eb">{title}</circle>'
    return f'<rect x="{left:.1f}" y="{middle - 3}" width="{right - left:.1f}" height="6" rx="2" fill="#2563eb">{title}</rect>'


def _interval_of(solution: Solution) -> Iterator[tuple[datetime, datetime]]:
    """Yield the interval, or nothing where Python has no datetime for it."""
    start, end = python_value(solution.start, "dateTime"), python_value(solution.end, "dateTime")
    if isinstance(start, datetime) and isinstance(end, datetime):
        yield start, end


def _micros(length: timedelta) -> float:
    return length / timedelta(microseconds=1)


def _moment_text(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def _row_of(solution: Solution, names: Sequence[str]) -> str:
    cells = _cells_of(solution)
    texts = [solution.start, solution.end, *(cells.get(name, "") for name in names)]
    return f"<tr>{''.join(f'<td>{escape(_cut(text))}</td>' for text in texts)}</tr>"


def _cells_of(solution: Solution) -> dict[str, str]:
    """Return what a row shows by column: a literal's text alone, as SPARQL's CSV has it."""
    if solution.triples is not None:
        return {"triples": solution.triples}
    if solution.boolean is not None:
        return {"boolean": str(solution.boolean).lower()}
    return {name: _bare_text(term_of(term)) for name, term in (solution.binding or {}).items()}


def _bare_text(term: Term) -> str:
    match term:
        case Literal(lexical):
            return lexical
        case Iri(value):
            return value
        case _:
            return str(term)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_CELL else f"{text[:_LONGEST_CELL]}…"
