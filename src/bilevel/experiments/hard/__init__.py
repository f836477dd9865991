"""The hard suite: how far each method gets as one thing after the other is made harder."""
