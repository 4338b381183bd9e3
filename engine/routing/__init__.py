"""Which bucket's engine an event concerns: by the value of a query's partition key (architecture.md, "Route")."""

from engine.routing.intake import cut_at_controls, routed
from engine.routing.keys import Key, NoKey, keys_of, partition
from engine.routing.parts import ONE, Part, Share, bucket_of
from engine.routing.sets import Moved, Route, Sets

__all__ = ["ONE", "Key", "Moved", "NoKey", "Part", "Route", "Sets", "Share", "bucket_of", "cut_at_controls", "keys_of", "partition", "routed"]
