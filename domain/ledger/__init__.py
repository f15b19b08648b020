"""The ledger: what code keeps word for word beside the prose of a summary."""
