"""This module hides modules that libraries load only in case someone uses them."""

import os
import sys
from importlib.machinery import ModuleSpec


class _Hidden:
    """Finds nothing under one name. Its base in importlib.abc would load eight modules."""

    def __init__(self, name: str) -> None:
        self._name = name

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if fullname == self._name:
            raise ModuleNotFoundError(f"{fullname} is not for this process", name=fullname)
        return None


def hide_modules(*names: str) -> None:
    """Have this process do without modules. pyarrow loads pandas (32 MB) to recognise its objects, so call this
    before the first array.

    Nothing is hidden from a process with functions of users, because these may want any module.
    """
    if "EPSPARQL_FUNCTIONS" not in os.environ:
        sys.meta_path[:0] = [_Hidden(name) for name in names]
