"""Demonstrations: recorded from experts, kept in data sets, checked, replayed, and what they show in symbols."""
