"""The command line: a file or a folder for each command, and what they share."""
