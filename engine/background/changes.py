"""Says which entries of the log change the background, and what it is after each: facts, the regime of entailment,
and static rules.

Every reader of a log goes by this, so all of them have the same background at the same entry.
"""

from collections.abc import Iterable
from functools import lru_cache

from engine.background.fact_store import FactIndex, numbers_of
from engine.background.static_rules.derivations import NegativeRecursion, RegisteredRule
from engine.background.static_rules.translate import StaticRuleRefused
from engine.messages import Drop, Entail, Entry, Facts, Register
from epsparql import QueryError, parse
from epsparql import algebra as a


class RuleRejected(Exception):
    """Signals a static rule that cannot stand with the others over the background; the text says why."""


def read_static_rule(entry: Register) -> RegisteredRule | None:
    """Return the static rule that an entry registers; None for any other query."""
    query = _read_rule(entry.text) if "BACKGROUND" in entry.text.upper() else None
    return None if query is None else RegisteredRule(entry.offset, entry.name, entry.text, entry.default_graph, query)


@lru_cache(maxsize=16)
def _read_rule(text: str) -> a.BackgroundRule | None:
    try:
        query = parse(text).query
    except QueryError:
        return None  # refused when it came, or by this version
    return query if isinstance(query, a.BackgroundRule) else None


def is_change(entry: Entry, known: FactIndex) -> bool:
    """Return whether an entry changes this background."""
    match entry:
        case Facts() | Entail():
            return True
        case Register():
            return read_static_rule(entry) is not None
        case Drop():
            return any(rule.registered == entry.registered for rule in known.rules)
        case _:
            return False


def apply_change(known: FactIndex, entry: Entry) -> FactIndex:
    """Return the background after an entry that changes it. Raises: RuleRejected."""
    match entry:
        case Facts():
            return known.with_change(entry.graph, numbers_of(entry.triples, known.terms), entry.change)
        case Entail():
            return known.under(entry.regime)
        case Register():
            rule = read_static_rule(entry)
            assert rule is not None
            return add_rule(known, rule)
        case Drop():
            return known.with_rules([rule for rule in known.rules if rule.registered != entry.registered])
    raise AssertionError(entry)


def add_rule(known: FactIndex, rule: RegisteredRule) -> FactIndex:
    """Return the background with one static rule more. Raises: RuleRejected."""
    try:
        found = known.with_rules([*known.rules, rule])
    except StaticRuleRefused as refused:
        raise RuleRejected(f"{refused} is not evaluated by this version") from None
    except NegativeRecursion as cycle:
        raise RuleRejected(f"static rules would depend on their own negation: {cycle}") from None
    if found.overflow is not None and known.is_derived:
        raise RuleRejected(str(found.overflow))
    return found


def with_standing_rules(known: FactIndex, rules: Iterable[RegisteredRule]) -> FactIndex:
    """Return a background with static rules, without those that are rejected."""
    every = tuple(rules)
    try:
        found = known.with_rules(every)
        if found.is_derived:
            return found
    except (StaticRuleRefused, NegativeRecursion):
        pass
    for rule in every:
        try:
            known = add_rule(known, rule)
        except RuleRejected:
            continue
    return known
