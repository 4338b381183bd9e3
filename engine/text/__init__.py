"""Compiled functions over terms' texts: interning, numbers in literals, texts out, and what terms are still in use."""
