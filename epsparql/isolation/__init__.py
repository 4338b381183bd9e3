"""This package runs what may take too much in processes with limits."""
