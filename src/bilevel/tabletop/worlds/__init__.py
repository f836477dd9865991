"""The worlds, a module for each with all that belongs to it, and the file of its domain beside it."""
