"""The infrastructure: adapters for the ports, and the composition root. Vendors are imported here, and late."""
