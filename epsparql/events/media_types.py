"""Names the media types of events, and the suffixes of files that hold them."""

NDJSON = "application/x-ndjson"
N_TRIPLES = "application/n-triples"
TURTLE = "text/turtle"
TRIG = "application/trig"
N_QUADS = "application/n-quads"
LD_JSON = "application/ld+json"
NDJSON_LD = "application/x-ld+ndjson"
RDF_XML = "application/rdf+xml"
ARROW = "application/vnd.apache.arrow.stream"
ETALIS_STREAM = "text/x-etalis-stream"
CSV, JSON, LINES = "text/csv", "application/json", "text/plain"
"""Bodies of these three go through the mapping of their stream."""

SUFFIXES = {
    ".ndjson": NDJSON,
    ".jsonl": NDJSON,
    ".nt": N_TRIPLES,
    ".ttl": TURTLE,
    ".trig": TRIG,
    ".nq": N_QUADS,
    ".jsonld": LD_JSON,
    ".ndjsonld": NDJSON_LD,
    ".rdf": RDF_XML,
    ".arrows": ARROW,
    ".stream": ETALIS_STREAM,
}
MAPPED_SUFFIXES = {".csv": CSV, ".tsv": CSV, ".json": JSON, ".ndjson": JSON, ".jsonl": JSON, ".log": LINES, ".txt": LINES}
"""Files of these suffixes can be read by a mapping."""
