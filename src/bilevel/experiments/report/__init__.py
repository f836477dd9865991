"""What was found, on one page to look at, in tables and in figures."""
