"""One file per engine; the registry loads them by name."""
