"""Durable notes: taken before messages leave the context, stored as events, shown in files."""
