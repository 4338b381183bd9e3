"""This package carries events and solutions: logs, formats, and the runners between them."""

from epsparql.extras import check_extra

check_extra("engine", "the pipeline")
