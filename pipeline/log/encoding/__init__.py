"""This package encodes rows of a frame: as one Arrow stream, or in slices for partitions."""
