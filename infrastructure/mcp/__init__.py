"""A server for the Model Context Protocol: tools and resources for reading the memory."""
