"""Durable notes: taken before messages leave the context, kept as events, and shown in files."""
