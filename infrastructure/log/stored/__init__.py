"""How events are stored: names and shapes, envelope and chain, encodings."""
