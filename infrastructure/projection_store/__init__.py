"""Read models in files next to the log. A damaged file is rebuilt by replay."""
