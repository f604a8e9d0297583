"""(Generated from _async/engines/__init__.py by tools/unasync.py: do not edit.) One file per engine; the registry loads them by name."""
