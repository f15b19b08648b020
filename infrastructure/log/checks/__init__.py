"""What ``verify`` looks for in a log, row by row and stream by stream."""
