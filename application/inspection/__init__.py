"""Data for the inspector: pictures from read models, lines with their sources, and what a summary left out."""
