"""Make summaries: their sources, their texts, and the fallbacks when a model fails."""
