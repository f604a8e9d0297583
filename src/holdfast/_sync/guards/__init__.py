"""(Generated from _async/guards/__init__.py by tools/unasync.py: do not edit.) The resource's side, in both colours: what refuses a writer that lost its lock (S22 to S24)."""
