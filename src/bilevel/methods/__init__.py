"""Who can act: BISON, its rivals, and the expert, in one table."""
