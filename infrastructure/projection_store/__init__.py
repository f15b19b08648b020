"""Read models in files beside the log, rebuilt by replay when they are damaged."""
