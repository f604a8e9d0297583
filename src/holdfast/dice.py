"""Dice of our own: naps and slots neither follow nor disturb the program's `random`.

A program that seeds `random` alike in all its workers would have them all knock at the same moment,
and one that seeds it to repeat a result would find it changed by a renewal.
"""

from __future__ import annotations

import os
import random

_dice = random.Random()

chance = _dice.random
between = _dice.uniform

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_dice.seed)
