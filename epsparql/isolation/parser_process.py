"""This script parses one text of RDF in a process that `isolated_parser.py` starts and bounds. It imports nothing of
ours, so it starts quickly.

stdin is a line of JSON with the parameters, and then the text. The statements leave as N-Quads; a fault leaves as a
line of JSON on stderr.
"""

import json
import sys

import pyoxigraph as ox

FAULT = 3
"""The exit code for a text that is not what its format says."""


def parse_stdin() -> int:
    parameters = json.loads(sys.stdin.buffer.readline())
    form = ox.RdfFormat.from_media_type(parameters.pop("media_type"))
    assert form is not None
    try:
        ox.serialize(ox.parse(sys.stdin.buffer.read(), form, **parameters), sys.stdout.buffer, ox.RdfFormat.N_QUADS)
        sys.stdout.buffer.flush()
    except SyntaxError as fault:
        print(json.dumps([fault.msg, fault.lineno, fault.offset]), file=sys.stderr)
    except ValueError as fault:  # the base is no IRI, or a term cannot be written
        print(json.dumps([str(fault), None, None]), file=sys.stderr)
    else:
        return 0
    return FAULT


if __name__ == "__main__":
    sys.exit(parse_stdin())
