"""Token counters: a fast estimator, and the Messages API's own count for a whole request."""
