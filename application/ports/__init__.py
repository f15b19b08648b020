"""What the use cases need from the world: one port a file, each with what it may raise."""
