"""The resource's side, in both colours: what refuses a writer that lost its lock (S22 to S24)."""
