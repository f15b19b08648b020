"""Request frames: the parts of a request apart from the conversation, recorded when they change."""
