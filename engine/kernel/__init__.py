"""The native kernel: an interpreter of operator networks held in int64 arrays, compiled by numba (architecture.md)."""
