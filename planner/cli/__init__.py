"""The command line: a module or package for each command, and the modules that they share."""
