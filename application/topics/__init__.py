"""Topics of covered messages, named by a model or by an extractor, and counted."""
