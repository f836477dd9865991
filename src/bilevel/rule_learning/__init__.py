"""Rules learned from problems: from all states of small ones."""
