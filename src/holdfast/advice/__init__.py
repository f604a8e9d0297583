"""From need to engine: what to use, why, what it promises and costs, how to start, what to watch.

`questions` asks, `rules` decides, `answer` puts together; nothing here prints or talks to a server.
"""

from .answer import Advice, advise
from .needs import Needs
from .questions import QUESTIONS, Question, missing

__all__ = ["QUESTIONS", "Advice", "Needs", "Question", "advise", "missing"]
