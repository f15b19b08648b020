"""Search over the Markdown notes of the workspace, hand edits included."""
