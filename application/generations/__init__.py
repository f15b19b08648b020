"""Conversations that began again under the id of an erased one: each has a stream of its own."""
