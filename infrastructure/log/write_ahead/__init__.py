"""The write-ahead log as bytes: judged before SQLite reads it, kept where it is damaged, read frame by frame."""
