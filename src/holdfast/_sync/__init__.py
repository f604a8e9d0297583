"""(Generated from _async/__init__.py by tools/unasync.py: do not edit.) Async source of the client; `_sync` is generated from it line by line (make sync)."""
