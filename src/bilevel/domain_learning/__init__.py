"""A domain from labelled states: what changes, who changes it, and under which conditions."""
