"""Durable notes in files that people write into as well."""
