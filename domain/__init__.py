"""The domain: pure values, events, the Conversation aggregate and what it may decide. No I/O, no clock, no vendors."""
