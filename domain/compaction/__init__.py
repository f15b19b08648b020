"""When and how a conversation is compacted: policy, budget, and the decisions of an attempt."""
