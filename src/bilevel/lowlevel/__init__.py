"""The low level: from what is seen and what is to be done to a control, by a small network that imitates an expert."""
