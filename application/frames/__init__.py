"""What requests carry besides the conversation: remembered while they are made, recorded when it changes."""
