"""The tests of refold."""
