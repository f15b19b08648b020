"""Erase messages and conversations, with everything that was made from them."""
