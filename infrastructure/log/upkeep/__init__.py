"""What is done with a log as a whole: backups, repair, salvage, compression, sizes."""
