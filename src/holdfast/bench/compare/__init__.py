"""The comparison: every engine and every peer, side by side, in one run."""
