"""This package decides which bucket's engine an event concerns, by the value of a query's partition key (architecture.md, "Route")."""

from engine.partitioning.crc32 import join_crcs
from engine.partitioning.hash_partitioner import ONE, Part, PartitionShare, bucket_of, find_buckets
from engine.partitioning.key_inference import Key, NoKey, keys_of, partition
from engine.partitioning.placement import Moved, Route, Sets
from engine.partitioning.plain_rows import PlainRows, find_latest_ends, source_of

__all__ = [
    "ONE",
    "Key",
    "Moved",
    "NoKey",
    "Part",
    "PartitionShare",
    "PlainRows",
    "Route",
    "Sets",
    "bucket_of",
    "find_buckets",
    "find_latest_ends",
    "join_crcs",
    "keys_of",
    "partition",
    "source_of",
]
