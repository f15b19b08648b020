"""Messages come in, and a conversation is loaded and read back."""
