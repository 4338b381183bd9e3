"""This package decides which partition's engine an event concerns, by the value of a query's partition key
(architecture.md, "Route").
"""

from engine.native.entries import join_crcs
from engine.partitioning.hash_partitioner import ONE, Part, PartitionShare, find_partitions, partition_of
from engine.partitioning.key_inference import Key, NoKey, keys_of, partition, propose_message_key
from engine.partitioning.message_keys import NO_KEYS, NodeKeys, NoSingleKey, find_message_keys, key_column, number_bodies
from engine.partitioning.placement import Division, Moved, Route, Sets, division_from_json, division_to_json
from engine.partitioning.plain_rows import PlainRows, events_of, find_latest_ends, source_of
from engine.partitioning.time_slices import NoSlices, TimeSlices, cut_time

__all__ = [
    "NO_KEYS",
    "ONE",
    "Division",
    "Key",
    "Moved",
    "NoKey",
    "NoSingleKey",
    "NoSlices",
    "NodeKeys",
    "Part",
    "PartitionShare",
    "PlainRows",
    "Route",
    "Sets",
    "TimeSlices",
    "cut_time",
    "division_from_json",
    "division_to_json",
    "events_of",
    "find_latest_ends",
    "find_message_keys",
    "find_partitions",
    "join_crcs",
    "key_column",
    "keys_of",
    "number_bodies",
    "partition",
    "partition_of",
    "propose_message_key",
    "source_of",
]
