"""The command line: one file per command, and `World` as the only way out of it."""
