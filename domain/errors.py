"""Every error that refold raises on purpose, and the rule that each says what to do next.

::

    RefoldError
    ├── InvalidThreadId (ValueError)        the thread id is missing, blank or unusable
    ├── InvalidMessage (ValueError)         a message is not one: names the field
    │   └── UnknownToolCall                 a tool result answers no open call
    ├── InvalidSetting (ValueError)         a setting is out of range: names itself
    ├── ContextWindowExceeded               what must be in the context does not fit
    ├── SummariserError                     a summariser could not answer (application.errors)
    ├── TokenCountError                     a request was not counted exactly (application.errors)
    ├── TranscriptError (ValueError)        a transcript file cannot be read (application.errors)
    └── LogError                            the store of events (application.errors)
        ├── LogNotFound, LogNotWritable, LogFull, LogBusy
        ├── NotARefoldLog, NewerLog
        └── LogDamaged                      content differs from its digest, a gap, a broken chain
"""


class RefoldError(Exception):
    """The root: ``except RefoldError`` catches all that refold raises on purpose."""


class InvalidThreadId(RefoldError, ValueError):
    """The thread id is missing, blank or unusable."""


class InvalidSetting(RefoldError, ValueError):
    """A setting has a value that cannot work; the message names it and the range."""


class InvalidMessage(RefoldError, ValueError):
    """A message is not valid; ``field`` is the path of what is wrong, such as ``content[2].input``."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


class UnknownToolCall(InvalidMessage):
    """A tool result answers a call that is not open in this conversation."""

    def __init__(self, field: str, call_id: str, problem: str) -> None:
        super().__init__(field, problem)
        self.call_id = call_id


class ContextWindowExceeded(RefoldError):
    """What must be in the context word for word does not fit the budget.

    ``needed`` and ``budget`` are tokens.
    """

    def __init__(self, needed: int, budget: int, explanation: str) -> None:
        super().__init__(
            f"the context needs {needed:,} tokens and the budget is {budget:,}: {explanation}"
        )
        self.needed = needed
        self.budget = budget
