"""Scrubbing: the stored rows are read little by little, so that damage is known while a backup is young."""
