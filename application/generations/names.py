"""The names of streams: the first of a thread has its id, later ones a number behind it."""

SEPARATOR = "\x1f"
"""No thread id has it: those are printable."""


def successor_of(stream: str) -> str:
    """Return the name of the stream that follows when this one was erased."""
    thread_id, _, number = stream.partition(SEPARATOR)
    return f"{thread_id}{SEPARATOR}{int(number or 1) + 1}"


def thread_of(stream: str) -> str:
    """Return the thread id of a stream."""
    return stream.partition(SEPARATOR)[0]
