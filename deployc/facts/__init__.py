"""RESOLVE: names in the deploy.yaml become facts about model, adapters, cards and engine.

In: `Deploy`, the lockfile's path, the environment. Out: `Facts` and a `Report`; a lockfile spares the network.
"""

from deployc.facts.resolution import resolve, update

__all__ = ["resolve", "update"]
