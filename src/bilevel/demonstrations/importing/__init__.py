"""Demonstrations from anywhere: readers of formats, which give recorded episodes, and one importer for all of them."""
