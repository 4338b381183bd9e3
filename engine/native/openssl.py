"""This module finds the functions of OpenSSL that compiled code calls."""

import ctypes
from functools import cache


@cache
def find_openssl() -> tuple[int, ...]:
    """Return the addresses of OpenSSL's three functions for SHA-256, or nothing if Python's hashlib does not share
    them.
    """
    try:
        import _hashlib  # which a Python without OpenSSL lacks

        library = ctypes.CDLL(_hashlib.__file__)
        return tuple(ctypes.cast(library[f"SHA256_{step}"], ctypes.c_void_p).value or 0 for step in ("Init", "Update", "Final"))
    except (ImportError, AttributeError, OSError):
        return ()
