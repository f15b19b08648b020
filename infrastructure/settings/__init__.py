"""Settings: one model, read from arguments, environment and a policy file, each value with its source."""
