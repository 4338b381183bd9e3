"""Bytes in and JSON out at native speed: what bodies are nearly always made of, and solutions as text. Compiled by numba, apart from the kernel."""
