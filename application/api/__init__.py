"""What users hold: the memory, a conversation in it, both for asyncio as well, and their results."""
