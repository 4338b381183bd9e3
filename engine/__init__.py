"""This package evaluates queries: plans, networks and the compiled kernel."""

from epsparql.extras import check_extra

check_extra("engine", "the engine")
