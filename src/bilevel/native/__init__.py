"""The compiled parts: reading plain problems, following rules, writing plans. See `bilevel.compiled`."""
