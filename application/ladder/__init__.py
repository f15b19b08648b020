"""The ladder: the steps that make a request smaller, each one recorded decision."""
