"""Questions of an inspector: why a line is in the memory, and what a summary did not take over."""
