"""The memory over the Model Context Protocol: tools and resources, for any client that speaks it."""
