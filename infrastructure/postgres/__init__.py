"""The log, read models, recall and vectors on a PostgreSQL server that several machines share."""
