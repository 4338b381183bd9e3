"""This module names the kernel's operators for people."""

from engine.kernel.state import layout as c

OPERATORS = {
    c.JOIN: "join",
    c.OUT: "out",
    c.PASS: "filter",
    c.EXTEND: "BIND",
    c.OPTIONAL: "OPTIONAL",
    c.OPTIONALSEQ: "OPTIONALSEQ",
    c.EQUALSOPTIONAL: "EQUALSOPTIONAL",
    c.MINUS: "MINUS",
    c.EXISTS: "EXISTS",
    c.NOTEXISTS: "NOT EXISTS",
    c.WITHOUT: "SEQ ... WITHOUT",
    c.WITHOUTFOR: "WITHOUT ... FOR",
    c.MOVE: "move",
    c.FIRST: "first",
    c.MARK: "EXISTS",
    c.FIND: "look up",
    c.EARLIEST: "earliest end",
    c.LATEST: "latest start",
    c.ONCE: "ONCE PER",
    c.INSTANCES: "instances",
    c.COLLECT: "the aggregate, ORDER BY or LIMIT",
    c.RECENT: "the policy recent",
    c.CHRONOLOGICAL: "the policy chronological",
}
RELATION_WORDS = {
    c.ANY: "AND",
    c.SEQ: "SEQ",
    c.EQUALS: "EQUALS",
    c.MEETS: "MEETS",
    c.DURING: "DURING",
    c.STARTS: "STARTS",
    c.FINISHES: "FINISHES",
    c.OVERLAPS: "OVERLAPS",
    c.PAR: "PAR",
}
