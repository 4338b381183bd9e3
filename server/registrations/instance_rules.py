"""Decides what queries with PARAMETERS may be registered, and what they cannot do."""

from engine.messages import CERTAIN
from pipeline.log.catalog import Registration
from pipeline.registrations.query_cache import get_shape
from server.http.problem_details import Fault, bad_request
from server.registrations.catalog_view import CatalogView
from server.registrations.catch_up_rules import conflict_fault


def check_parameters_wish(catalog: CatalogView, name: str, text: str, emit: str, *, starts_now: bool, notify_at: int | None) -> None:
    """Check that a query may have this name, and PARAMETERS with these options. Raises: Fault 400, 409."""
    owner, _, instance = name.rpartition("/")
    if owner and (known := catalog.log.catalogue.queries.get(owner)) is not None and get_shape(known.text).parameters:
        raise _name_fault(name, f"a token for the instance {instance!r} of {owner!r} would be one for {name!r}")
    if not get_shape(text).parameters:
        return
    if emit != CERTAIN:
        raise bad_request("parameters", "a query with PARAMETERS cannot be emitted as revised", expected="emit certain", query=name)
    if not starts_now:
        detail = "an instance has solutions of what comes after it was added, so a query with PARAMETERS reads from now on"
        raise bad_request("parameters", detail, expected="from now", query=name)
    if notify_at is not None:
        raise bad_request("parameters", "the first operands of a query with PARAMETERS have no instances", expected="no notify_at", query=name)
    if (below := next((each for each in list(catalog.log.catalogue.queries) if each.startswith(f"{name}/")), None)) is not None:
        raise _name_fault(name, f"a token for an instance of it would be one for {below!r}")


def _name_fault(name: str, reason: str) -> Fault:
    return conflict_fault("name-of-instance", f"{name!r} cannot be this query's name, because {reason}; take another name", name)


def refuse_parameters(registration: Registration, what: str, remedy: str) -> None:
    """Refuse what a query with PARAMETERS cannot do. Raises: Fault 409."""
    if get_shape(registration.text).parameters:
        raise conflict_fault("parameters", f"{registration.name!r} has PARAMETERS, and cannot {what}: {remedy}", registration.name)
