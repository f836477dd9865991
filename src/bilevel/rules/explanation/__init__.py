"""Rules for people to read: formats, plain English, and why no rule applies."""
