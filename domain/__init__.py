"""The domain: pure values, events, the ``Conversation`` aggregate and its decisions, without I/O or clocks."""
