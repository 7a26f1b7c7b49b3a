"""The engine catalogue is read, never guessed: an engine's own source package becomes `profiles/engines/<name>.json`.

In: the unpacked sources of one version. Out: its flags and the behaviours that plan and emit depend on, each with the
file and line it was read from. Nothing of the engine is imported or run. `python -m deployc.facts.catalogue VERSION…`
"""

from deployc.facts.catalogue.source import Unreadable

__all__ = ["Unreadable"]
