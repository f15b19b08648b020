"""What is done with a log as a whole: verification, repair, backups."""
