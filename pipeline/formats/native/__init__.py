"""This package reads bytes and writes JSON at native speed: the usual content of bodies, and solutions as text.

It is compiled by numba, apart from the kernel.
"""
