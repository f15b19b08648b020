"""Making a summary: its source, its text, and what stands in where a model fails."""
