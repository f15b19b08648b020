"""Durable notes in files that people edit as well."""
