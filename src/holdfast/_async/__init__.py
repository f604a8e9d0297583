"""Async source of the client; `_sync` is generated from it line by line (make sync)."""
