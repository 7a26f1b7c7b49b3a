"""All rules over what others wrote."""

from __future__ import annotations

from collections.abc import Sequence

from deployc.adopt.judge import command, container, exposure, flags, shared, unit
from deployc.adopt.judge.case import FileRule, Judged, LaunchRule
from deployc.diagnostics import Diagnostic

LAUNCH_RULES: tuple[LaunchRule, ...] = (
    command.names_a_model,
    command.program_once,
    command.model_by_position,
    command.stray_words,
    command.json_is_bare,
    command.variables,
    command.shell_form,
    flags.as_the_engine_takes_them,
    container.one_way_of_counting,
    container.a_card_is_reserved,
    container.cards_suffice,
    container.shared_memory,
    container.check_has_its_tool,
    container.time_to_start,
    container.restarts_end,
    container.caches_can_be_written,
    container.time_to_finish,
    exposure.key_in_sight,
    exposure.key_in_the_image,
    exposure.reached_by_all,
    unit.start_timeout,
    unit.hardening,
)
FILE_RULES: tuple[FileRule, ...] = (shared.one_card,)


def judge(cases: Sequence[Judged]) -> list[Diagnostic]:
    """What every rule has to say of the launches of one file."""
    found = [diagnostic for case in cases for rule in LAUNCH_RULES for diagnostic in rule(case)]
    return found + [diagnostic for rule in FILE_RULES for diagnostic in rule(cases)]
