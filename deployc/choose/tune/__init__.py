"""TUNE: of all configurations that the file leaves open, the cheapest that meets the SLA, and the front.

In: `Deploy`, `Facts`, the cards to look at. Out: `Tuned`: the choice, the front, what was looked at and how.
"""

from deployc.choose.tune.change import changes
from deployc.choose.tune.search import Tuned, tune
from deployc.choose.tune.space import OPEN, Cards, fixed, spelled

__all__ = ["OPEN", "Cards", "Tuned", "changes", "fixed", "spelled", "tune"]
