"""What ships for the lab: prices and the conversation of the demo."""
