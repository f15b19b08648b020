"""Conversation memory for LLM agents that can always be rebuilt."""
