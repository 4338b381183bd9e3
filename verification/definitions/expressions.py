"""The naive evaluator's expressions (semantics.md section 4): exact fractions and the standard library's calendar.

Written apart from engine/, so that one error is not made twice. Functions: only those that the random tests use.
"""

import re
from collections.abc import Callable, Collection, Mapping
from ctypes import c_float
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from math import inf, nan
from operator import eq, ge, gt, le, lt, ne
from struct import pack, unpack

import pyoxigraph as ox

from epsparql import algebra
from epsparql.iris import resolve
from epsparql.terms import RDF_DIR_LANG_STRING, RDF_LANG_STRING, XSD, XSD_STRING, BlankNode, Iri, Literal, Term, TripleTerm, Variable
from epsparql.trees import list_fields
from verification.definitions.model import Fact
from verification.definitions.routes import best_path, links_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
INTEGER, DECIMAL, DOUBLE, FLOAT, BOOLEAN = (XSD + name for name in ("integer", "decimal", "double", "float", "boolean"))
INTEGERS: dict[str, tuple[float, float]] = {
    INTEGER: (-inf, inf), XSD + "nonPositiveInteger": (-inf, 0), XSD + "negativeInteger": (-inf, -1), XSD + "nonNegativeInteger": (0, inf),
    XSD + "positiveInteger": (1, inf), XSD + "unsignedByte": (0, 255), XSD + "byte": (-128, 127), XSD + "short": (-32768, 32767),
    XSD + "unsignedShort": (0, 65535), XSD + "int": (-(2**31), 2**31 - 1), XSD + "unsignedInt": (0, 2**32 - 1), XSD + "long": (-(2**63), 2**63 - 1),
    XSD + "unsignedLong": (0, 2**64 - 1),
}  # fmt: skip
"""The integer types and the values between which theirs lie."""
NUMERIC = (*INTEGERS, DECIMAL, FLOAT, DOUBLE)
SINGLES = 2  # their rank
LONGEST = 1000  # characters of a dateTime, time or duration
DURATIONS = (XSD + "duration", XSD + "dayTimeDuration", XSD + "yearMonthDuration")
Lookup = Callable[[Variable], Term | None]
Choice = Mapping[algebra.Exists, bool]
COMPARE = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}


class Failure(Exception):
    """SPARQL's error."""


# ---------------------------------------------------------------- from literals
def numeric(term: Term) -> Fraction | float | None:
    """An exact fraction for integers and decimals, a float for doubles and floats."""
    if not isinstance(term, Literal):
        return None
    if term.datatype in INTEGERS and re.fullmatch(r"[+-]?\d+", term.lexical, re.ASCII):
        least, most = INTEGERS[term.datatype]
        return Fraction(int(term.lexical)) if least <= int(term.lexical) <= most else None
    if term.datatype == DECIMAL and re.fullmatch(r"[+-]?(\d+(\.\d*)?|\.\d+)", term.lexical, re.ASCII):
        return Fraction(Decimal(term.lexical))
    if term.datatype in (DOUBLE, FLOAT):
        if re.fullmatch(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", term.lexical, re.ASCII):
            if term.datatype == DOUBLE or (term.lexical.startswith("-") and float(term.lexical) == 0):
                return float(term.lexical)
            return nearest_single(Fraction(Decimal(term.lexical)))
        return {"INF": inf, "+INF": inf, "-INF": -inf, "NaN": nan}.get(term.lexical)
    return None


def rank(term: Term) -> int:
    """The place of a number's type in the order of promotion: integers, decimals, floats, doubles."""
    assert isinstance(term, Literal)
    return (INTEGER, DECIMAL, FLOAT, DOUBLE).index(INTEGER if term.datatype in INTEGERS else term.datatype)


def nearest_double(value: Fraction | float) -> float:
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf


def nearest_single(value: Fraction | float) -> float:
    """The 32-bit float nearest to a value, of two the even one."""
    near = c_float(nearest_double(value)).value
    if isinstance(value, float) or near in (inf, -inf):
        return near
    (bits,) = unpack("<i", pack("<f", near))
    around = [unpack("<f", pack("<i", bits + step))[0] for step in (-1, 0, 1) if bits + step >= 0 or bits < 0]
    found: float = min(
        (each for each in around if abs(each) < inf), key=lambda each: (abs(Fraction(each) - value), unpack("<i", pack("<f", each))[0] & 1)
    )
    return found


def boolean(term: Term) -> bool | None:
    if isinstance(term, Literal) and term.datatype == BOOLEAN:
        return {"true": True, "1": True, "false": False, "0": False}.get(term.lexical)
    return None


def instant(term: Term) -> int | Fraction | None:
    """Microseconds since 1970."""
    shape = r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)?"
    if not isinstance(term, Literal) or term.datatype != XSD + "dateTime" or len(term.lexical) > LONGEST:
        return None
    found = re.fullmatch(shape, term.lexical, re.ASCII)
    if found is None:
        return None
    try:
        moment = datetime.fromisoformat(found[1] + (found[3] or ""))
    except ValueError:
        return None
    micros = (moment.replace(tzinfo=moment.tzinfo or UTC) - EPOCH) // timedelta(microseconds=1) + Fraction(found[2] or 0) * 1_000_000
    return int(micros) if micros.denominator == 1 else micros


def time_of_day(term: Term) -> int | Fraction | None:
    """Microseconds since midnight in UTC, on whatever day that is."""
    if not isinstance(term, Literal) or term.datatype != XSD + "time":
        return None
    lexical = term.lexical.replace("24:00:00", "00:00:00", 1) if re.match(r"24:00:00(\.0+)?(?!\.)", term.lexical) else term.lexical
    moment = instant(Literal(f"1972-12-31T{lexical}", XSD + "dateTime"))
    return None if moment is None else moment - (datetime(1972, 12, 31, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)


def duration(term: Term) -> tuple[int, Fraction] | None:
    """Months and microseconds."""
    shape = r"(-?)P(?!$)(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)D)?(?:T(?!$)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?"
    if not isinstance(term, Literal) or term.datatype not in DURATIONS or len(term.lexical) > LONGEST:
        return None
    found = re.fullmatch(shape, term.lexical, re.ASCII)
    if found is None:
        return None
    sign = -1 if found[1] else 1
    years, months, days, hours, minutes = (int(found[n] or 0) for n in range(2, 7))
    seconds = ((days * 24 + hours) * 60 + minutes) * 60 + Fraction(found[7] or 0)
    return sign * (years * 12 + months), sign * seconds * 1_000_000


def text_value(term: Term) -> str | None:
    return term.lexical if isinstance(term, Literal) and term.datatype == XSD_STRING else None


# ---------------------------------------------------------------- to literals
def flag(value: bool) -> Literal:
    return Literal("true" if value else "false", BOOLEAN)


def integer(value: Fraction) -> Literal:
    return Literal(str(int(value)), INTEGER)


def decimal(value: Fraction) -> Literal:
    """Exact: the callers pass fractions that terminate."""
    digits = 0
    while (value * 10**digits).denominator != 1:
        digits += 1
    shown = f"{abs(int(value * 10**digits)):0{digits + 1}}"
    whole, fraction = (shown[: len(shown) - digits], shown[len(shown) - digits :]) if digits else (shown, "0")
    return Literal(f"{'-' if value < 0 else ''}{whole}.{fraction}", DECIMAL)


def double(value: float) -> Literal:
    if value != value or value in (float("inf"), float("-inf")):
        return Literal({"nan": "NaN", "inf": "INF", "-inf": "-INF"}[str(value)], DOUBLE)
    mantissa, exponent = next(shown.split("e") for digits in range(18) if float(shown := f"{value:.{digits}e}") == value)
    whole, _, fraction = mantissa.partition(".")
    return Literal(f"{whole}.{fraction.rstrip('0') or '0'}E{int(exponent)}", DOUBLE)


def single(value: float) -> Literal:
    """Return a 32-bit float as `double` does, with the fewest digits that tell it from other 32-bit floats."""
    if value != value or value in (inf, -inf):
        return Literal(double(value).lexical, FLOAT)
    shown = next(shown for digits in range(10) if nearest_single(Fraction(Decimal(shown := f"{value:.{digits}e}"))) == value)
    mantissa, exponent = shown.split("e")
    whole, _, fraction = mantissa.partition(".")
    return Literal(f"{whole}.{fraction.rstrip('0') or '0'}E{int(exponent)}", FLOAT)


def date_time(micros: int | Fraction, zone: str = "Z") -> Literal:
    """The instant as a clock in that zone shows it; `zone` is as written, "" for none."""
    offset = datetime.fromisoformat(f"2000-01-01T00:00:00{zone or 'Z'}").utcoffset() or timedelta()
    second, rest = divmod(micros, 1_000_000)
    shown = (EPOCH + timedelta(seconds=second) + offset).isoformat().removesuffix("+00:00")
    fraction = decimal(Fraction(rest) / 1_000_000).lexical.removeprefix("0").removesuffix(".0")
    return Literal(shown + fraction + ("Z" if zone and not offset else zone), XSD + "dateTime")


def day_time(micros: int | Fraction) -> Literal:
    rest, parts = abs(Fraction(micros)), []
    for size, unit in ((86_400_000_000, "D"), (3_600_000_000, "H"), (60_000_000, "M"), (1_000_000, "S")):
        count = rest / size if unit == "S" else Fraction(rest // size)
        rest -= count * size
        if count:
            parts.append(decimal(count).lexical.removesuffix(".0") + unit)
    days = "".join(part for part in parts if part[-1] == "D")
    time = "".join(part for part in parts if part[-1] != "D")
    return Literal(f"{'-' if micros < 0 else ''}P{days}{'T' if time or not days else ''}{time or ('' if days else '0S')}", XSD + "duration")


# ---------------------------------------------------------------- operators
def effective(term: Term) -> bool:
    if (known := boolean(term)) is not None:
        return known
    if (number := numeric(term)) is not None:
        return number == number and number != 0
    if isinstance(term, Literal):
        if term.datatype in (BOOLEAN, *NUMERIC):
            return False
        if term.language is not None or term.datatype == XSD_STRING:
            return term.lexical != ""
    raise Failure


def promoted(a: Term, b: Term) -> tuple[Fraction, Fraction] | tuple[float, float] | None:
    """Both as numbers of the greater type; None if one is no number."""
    m, n = numeric(a), numeric(b)
    if m is None or n is None:
        return None
    if isinstance(m, Fraction) and isinstance(n, Fraction):
        return m, n
    nearest = nearest_single if max(rank(a), rank(b)) == SINGLES else nearest_double
    return nearest(m), nearest(n)


def month_start(months: int) -> int:
    return (datetime(months // 12, months % 12 + 1, 1, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)


def compare_durations(op: str, a: tuple[int, Fraction], b: tuple[int, Fraction]) -> bool:
    if op in ("=", "!="):
        return COMPARE[op](a, b) is True
    sides = set()
    for year, month in ((1696, 9), (1697, 2), (1903, 3), (1903, 7)):
        left, right = (month_start(year * 12 + month - 1 + months) + micros for months, micros in (a, b))
        sides.add((left > right) - (left < right))
    if len(sides) > 1:
        raise Failure
    return COMPARE[op](sides.pop(), 0) is True


def compare(op: str, a: Term, b: Term) -> bool:
    if (pair := promoted(a, b)) is not None:
        return COMPARE[op](*pair) is True
    if (p := duration(a)) is not None and (q := duration(b)) is not None:
        return compare_durations(op, p, q)
    for read in (boolean, text_value, instant, time_of_day):
        if (left := read(a)) is not None and (right := read(b)) is not None:
            return COMPARE[op](left, right) is True
    if op not in ("=", "!="):
        raise Failure
    return same(a, b) == (op == "=")


def same(a: Term, b: Term) -> bool:
    """Terms that no value comparison is for."""
    if isinstance(a, TripleTerm) and isinstance(b, TripleTerm):
        return a.subject == b.subject and a.predicate == b.predicate and compare("=", a.object, b.object)
    if not isinstance(a, Literal) or not isinstance(b, Literal):
        return a == b
    if a.language is not None or b.language is not None:
        return a.lexical == b.lexical and (a.language or "").lower() == (b.language or "").lower()
    if a == b:
        return True
    if any(all(read(term) is None for read in (numeric, boolean, text_value, instant, time_of_day, duration)) for term in (a, b)):
        raise Failure
    return False


def calculate(op: str, a: Term, b: Term) -> Term:
    if (pair := promoted(a, b)) is not None:
        assert isinstance(a, Literal)
        x, y = pair
        if isinstance(x, float) or isinstance(y, float):
            found = calculate_doubles(op, float(x), float(y))
            return single(nearest_single(found)) if max(rank(a), rank(b)) == SINGLES else double(found)
        if op == "/":
            return decimal(quotient(x, y, a.lexical))
        result = x + y if op == "+" else x - y if op == "-" else x * y
        return integer(result) if rank(a) == rank(b) == 0 else decimal(result)
    return calculate_times(op, a, b)


def calculate_doubles(op: str, x: float, y: float) -> float:
    if op != "/":
        return x + y if op == "+" else x - y if op == "-" else x * y
    if y:
        return x / y
    if not x or x != x or y != y:
        return float("nan")
    return float("inf") if (str(x)[0] == "-") == (str(y)[0] == "-") else float("-inf")


def quotient(x: Fraction, y: Fraction, dividend: str) -> Fraction:
    """34 significant digits, or as many as the dividend has; half to even."""
    if y == 0:
        raise Failure
    exact, digits = x / y, max(34, len(dividend.lstrip("+-0.").replace(".", "")))
    if exact == 0:
        return exact
    magnitude = 0
    while abs(exact) >= Fraction(10) ** (magnitude + 1):
        magnitude += 1
    while abs(exact) < Fraction(10) ** magnitude:
        magnitude -= 1
    unit = Fraction(10) ** (magnitude - digits + 1)
    return round(exact / unit) * unit


def calculate_times(op: str, a: Term, b: Term) -> Term:
    left, right, first, second = instant(a), instant(b), duration(a), duration(b)
    if left is not None and right is not None and op == "-":
        return length(Fraction(left - right, 1_000_000))
    if left is not None and second is not None and op in "+-":
        return moment(left + day_time_micros(second) if op == "+" else left - day_time_micros(second), zone_of(a))
    if first is not None and right is not None and op == "+":
        return moment(day_time_micros(first) + right, zone_of(b))
    return calculate_durations(op, a, b)


def day_time_micros(found: tuple[int, Fraction]) -> Fraction:
    months, micros = found
    if months:
        raise Failure
    return micros


def moment(micros: Fraction, zone: str) -> Literal:
    found = date_time(micros, zone)
    if len(found.lexical) > LONGEST:
        raise Failure
    return found


def calculate_durations(op: str, a: Term, b: Term) -> Term:
    """Calculate with day-time durations and numbers (semantics.md section 15)."""
    first, second, m, n = total_seconds(a), total_seconds(b), numeric(a), numeric(b)
    if first is not None and second is not None and op != "*":
        return decimal(quotient(first, second, decimal(first).lexical)) if op == "/" else length(first + second if op == "+" else first - second)
    if op == "*" and (first is None) != (second is None):
        scale, by = (first, n) if second is None else (second, m)
        assert scale is not None
        return length(scale * finite(by))
    if op == "/" and first is not None and n is not None:
        return length(Fraction(0) if n in (inf, -inf) else quotient(first, finite(n), decimal(first).lexical))
    raise Failure


def total_seconds(term: Term) -> Fraction | None:
    """The seconds of a day-time duration."""
    found = duration(term)
    return None if found is None or found[0] else found[1] / 1_000_000


def length(seconds: Fraction) -> Literal:
    found = day_time(seconds * 1_000_000)
    if len(found.lexical) > LONGEST:
        raise Failure
    return found


def finite(number: Fraction | float | None) -> Fraction:
    if number is None or (isinstance(number, float) and (number != number or number in (inf, -inf))):
        raise Failure
    return Fraction(number)


def zone_of(term: Term) -> str:
    """The zone of a dateTime as it is written, "" without one."""
    assert isinstance(term, Literal)
    found = re.search(r"(?:Z|[+-]\d\d:\d\d)$", term.lexical)
    return found[0] if found else ""


# ---------------------------------------------------------------- expressions
def evaluate(
    expression: algebra.Expression, lookup: Lookup, start: int | None, end: int | None, exists: Choice, facts: Collection[Fact] = ()
) -> Term:
    """The expression's value for the solution `lookup` on [start, end]; `exists` says how each EXISTS comes out, `facts` are the background.

    Raises: Failure.
    """

    def evaluate_operand(operand: algebra.Expression) -> Term:
        return evaluate(operand, lookup, start, end, exists, facts)

    def truth_of(operand: algebra.Expression) -> bool | None:
        return truth(operand, lookup, start, end, exists, facts)

    match expression:
        case algebra.Constant(term):
            return term
        case algebra.Var(variable):
            return required(lookup(variable))
        case algebra.Or(left, right):
            return flag(decided(truth_of(left), truth_of(right), True))
        case algebra.And(left, right):
            return flag(decided(truth_of(left), truth_of(right), False))
        case algebra.Not(operand):
            return flag(not effective(evaluate_operand(operand)))
        case algebra.Compare(op, left, right):
            return flag(compare(op.value, evaluate_operand(left), evaluate_operand(right)))
        case algebra.Arithmetic(operator, left, right):
            return calculate(operator.value, evaluate_operand(left), evaluate_operand(right))
        case algebra.Negate(operand):
            return negated(evaluate_operand(operand))
        case algebra.Bound(variable):
            return flag(lookup(variable) is not None)
        case algebra.If(condition, then, otherwise):
            return evaluate_operand(then) if effective(evaluate_operand(condition)) else evaluate_operand(otherwise)
        case algebra.In(operand, members):
            return flag(among(evaluate_operand(operand), members, evaluate_operand))
        case algebra.Coalesce(operands):
            return first_value(operands, evaluate_operand)
        case algebra.Time(function):
            return time(function, start, end)
        case algebra.Exists():
            return flag(exists[expression])
        case algebra.Call(name, operands):
            return call_function(name, [evaluate_operand(operand) for operand in operands], facts)
    raise NotImplementedError(expression)


def truth(
    expression: algebra.Expression, lookup: Lookup, start: int | None, end: int | None, exists: Choice, facts: Collection[Fact] = ()
) -> bool | None:
    try:
        return effective(evaluate(expression, lookup, start, end, exists, facts))
    except Failure:
        return None


def required(term: Term | None) -> Term:
    if term is None:
        raise Failure
    return term


def decided(left: bool | None, right: bool | None, decisive: bool) -> bool:
    if decisive in (left, right):
        return decisive
    if None in (left, right):
        raise Failure
    return not decisive


def negated(term: Term) -> Term:
    number = numeric(term)
    if number is None:
        raise Failure
    assert isinstance(term, Literal)
    if isinstance(number, float):
        return double(-number) if term.datatype == DOUBLE else single(-number)
    return integer(-number) if term.datatype in INTEGERS else decimal(-number)


def among(value: Term, members: tuple[algebra.Expression, ...], evaluated: Callable[[algebra.Expression], Term]) -> bool:
    failed = False
    for member in members:
        try:
            if compare("=", value, evaluated(member)):
                return True
        except Failure:
            failed = True
    if failed:
        raise Failure
    return False


def first_value(operands: tuple[algebra.Expression, ...], evaluated: Callable[[algebra.Expression], Term]) -> Term:
    for operand in operands:
        try:
            return evaluated(operand)
        except Failure:
            continue
    raise Failure


def time(function: algebra.TimeFunction, start: int | None, end: int | None) -> Term:
    if start is None or end is None:
        raise Failure
    return {
        algebra.TimeFunction.DURATION: day_time(end - start),
        algebra.TimeFunction.START: date_time(start),
        algebra.TimeFunction.END: date_time(end),
    }[function]


def string(term: Term) -> Term:
    match term:
        case Iri(value):
            return Literal(value)
        case Literal(lexical):
            return Literal(lexical)
        case BlankNode() | TripleTerm():
            raise Failure


def of_iris(name: str, terms: list[Term]) -> Term:
    """The functions that take IRIs of data, which have to be absolute and valid; a last IRI of IRI is BASE."""
    match name, terms:
        case "IRI", [(Iri(text) | Literal(text, "http://www.w3.org/2001/XMLSchema#string")), *base]:
            assert all(isinstance(each, Iri) for each in base)
            return absolute(resolve(text, base[0].value if base and isinstance(base[0], Iri) else None))
        case "STRDT", [Literal(lexical, "http://www.w3.org/2001/XMLSchema#string"), Iri(datatype)]:
            if datatype not in (RDF_LANG_STRING, RDF_DIR_LANG_STRING):
                return Literal(lexical, absolute(datatype).value)
    raise Failure


def absolute(text: str) -> Iri:
    try:
        return Iri(ox.NamedNode(text).value)
    except ValueError:
        raise Failure from None


def of_triples(name: str, terms: list[Term]) -> Term:
    """The functions that make triple terms and take them apart."""
    match name, terms:
        case "ISTRIPLE", [term]:
            return flag(isinstance(term, TripleTerm))
        case "TRIPLE", [(Iri() | BlankNode()) as subject, Iri() as predicate, object_]:
            return TripleTerm(subject, predicate, object_)
        case "SUBJECT", [TripleTerm() as triple]:
            return triple.subject
        case "PREDICATE", [TripleTerm() as triple]:
            return triple.predicate
        case "OBJECT", [TripleTerm() as triple]:
            return triple.object
    raise Failure


def call_function(name: str, terms: list[Term], facts: Collection[Fact]) -> Term:
    """The value of a function for its arguments. Raises: Failure."""
    match name, terms:
        case "<urn:epsparql:function:seconds>", [term]:
            seconds = total_seconds(term)
            if seconds is None:
                raise Failure
            return decimal(seconds)
        case "<urn:epsparql:function:route>" | "<urn:epsparql:function:routeLength>", _:
            return of_routes(name, terms, facts)
        case "STR", [term]:
            return string(term)
        case "IRI" | "STRDT", _:
            return of_iris(name, terms)
        case "ISTRIPLE" | "TRIPLE" | "SUBJECT" | "PREDICATE" | "OBJECT", _:
            return of_triples(name, terms)
    raise NotImplementedError(name)


def of_routes(name: str, terms: list[Term], facts: Collection[Fact]) -> Term:
    """ep:route and ep:routeLength. Raises: Failure."""
    source, target, *predicates = terms
    if not isinstance(source, Iri | BlankNode) or not isinstance(target, Iri | BlankNode) or not all(isinstance(p, Iri) for p in predicates):
        raise Failure
    found = best_path(links_of(facts, predicates[0], predicates[1] if len(predicates) > 1 else None, weight_of), source, target)
    if found is None:
        raise Failure
    path, links = found
    if name.endswith("route>"):
        return Literal(" ".join(path.nodes))
    kinds = [rank(link.written) for link in links if link.written is not None]
    if not kinds:
        return integer(Fraction(path.steps))
    return (integer, decimal, lambda sum_: single(nearest_single(sum_)), lambda sum_: double(nearest_double(sum_)))[max(kinds)](path.weight)


def weight_of(term: Term) -> Fraction | None:
    """The exact value of a finite number."""
    try:
        return finite(numeric(term))
    except Failure:
        return None


def exists_in(expression: object) -> list[algebra.Exists]:
    """The EXISTS of an expression, not those inside their patterns."""
    if isinstance(expression, algebra.Exists):
        return [expression]
    if isinstance(expression, tuple):
        return list(dict.fromkeys(found for part in expression for found in exists_in(part)))
    names = list_fields(type(expression)) or ()
    return list(dict.fromkeys(found for name in names for found in exists_in(getattr(expression, name))))
