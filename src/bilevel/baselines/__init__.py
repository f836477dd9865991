"""The rivals: policies that do without rules."""
