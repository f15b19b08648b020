"""Agent tools in the form that a provider's SDK expects."""
