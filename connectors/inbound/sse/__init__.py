"""Server-Sent Events in: the source, the parser of event streams, and changes of RDF graphs as Wikidata sends them."""
