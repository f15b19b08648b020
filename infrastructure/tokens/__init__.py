"""Token counters: an estimator for every append, and the Messages API's own count for a whole request."""
