"""Log lines, spans, metrics and callbacks."""
