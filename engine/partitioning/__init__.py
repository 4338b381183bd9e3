"""This package decides which bucket's engine an event concerns, by the value of a query's partition key (architecture.md, "Route")."""

from engine.partitioning.hash_partitioner import ONE, Part, PartitionShare, bucket_of
from engine.partitioning.key_inference import Key, NoKey, keys_of, partition
from engine.partitioning.placement import Moved, Route, Sets

__all__ = ["ONE", "Key", "Moved", "NoKey", "Part", "PartitionShare", "Route", "Sets", "bucket_of", "keys_of", "partition"]
