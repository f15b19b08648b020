"""Looking at a conversation as it was, comparing, and going on from there."""
