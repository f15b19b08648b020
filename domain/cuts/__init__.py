"""Where a conversation may be cut (``rules``), and which of these cuts a compaction takes (``planner``)."""
