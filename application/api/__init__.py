"""The public API: the memory, its conversations, their asyncio versions and the results."""
