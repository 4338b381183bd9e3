"""This package turns requests of OTLP, the protocol of OpenTelemetry, into events."""
