"""Making the text of a summary: what goes to which call, in which pieces, and what stands for failures."""
