"""Condition-action rules: learning them, matching them, running them, explaining and verifying them."""
