"""The command line, and functions that combine the other packages."""
