"""The stories that `holdfast lab tell` plays: each a few lines, for real."""

from . import crashes, mixups, partitions, pauses
from .story import Story, Telling, tell

_CHAPTERS = (pauses, partitions, crashes, mixups)
STORIES = {story.name: story for chapter in _CHAPTERS for story in chapter.STORIES}

__all__ = ["STORIES", "Story", "Telling", "tell"]
