"""python -m holdfast.testing.simulation: replay one seed, or run a range of them."""

from __future__ import annotations

import sys

from .command import main

sys.exit(main())
