"""The application: use cases, ports, projections as pure folds, and the service that agents embed."""
