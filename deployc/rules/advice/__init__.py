"""Advice judged by simulation: what a setting of the file costs, against the same configuration without it.

In: a `Case`. Out: warnings that name the line, the value, and what is lost and won by it, each with its band.
"""

from deployc.rules.advice.eager import graphs_are_off
from deployc.rules.advice.host import host_bound
from deployc.rules.advice.idle import fp8_for_nothing
from deployc.rules.advice.judge import settings

__all__ = ["fp8_for_nothing", "graphs_are_off", "host_bound", "settings"]
