"""The ETALIS Language for Events: text to the algebra of EP-SPARQL (docs/etalis.md)."""
