"""(Generated from _async/recipes/__init__.py by tools/unasync.py: do not edit.) The kinds of lock: each only describes a claim, none knows an engine."""
