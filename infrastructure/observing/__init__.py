"""Observability: log lines, OpenTelemetry, callbacks. All of it looks on and changes nothing."""
