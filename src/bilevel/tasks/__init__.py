"""What a user brings: a task is a value, made of a domain, an environment, and what connects the two."""
