"""The kinds of lock: each only describes a claim, none knows an engine."""
