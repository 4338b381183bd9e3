"""Compiled answers to the kernel's questions: exact arithmetic of integers and decimals, and names that are digests of terms."""
