"""One change of the file: in words, and the configuration under it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

from deployc.cost.prediction import Setting, setting
from deployc.cost.written import written_flag
from deployc.rules.case import Case
from deployc.rules.remedies import with_value
from deployc.types.choices import Choices
from deployc.types.facts import Facts

Price = Literal["free", "format", "cards", "card"]
PRICES: tuple[Price, ...] = ("free", "format", "cards", "card")
"""From what costs nothing, over other bytes for weights or KV cache and more cards of the kind, to another kind."""


@dataclass(frozen=True, slots=True)
class Option:
    """A change: `words` name the key, and the line where it says otherwise now."""

    words: str
    price: Price
    setting: Setting

    @property
    def starts(self) -> bool:
        """Whether the engine surely starts under it."""
        at = self.setting
        return at.bill.kv_cache.low >= max(1, at.pages.needed(at.choices.max_model_len.value))


def option(case: Case, words: str, price: Price, choices: Choices, facts: Facts | None = None) -> Option:
    """A change of choices, and of the cards where these are given."""
    return Option(words, price, setting(case.deploy, facts or case.facts, choices))


def changed(case: Case, **values: Any) -> Choices:
    """Other choices; sequences at once follow the load of one engine where the file does not say how many."""
    choices = with_value(case.choices, **values)
    flight = case.deploy.workload.concurrency
    if "replicas" in values and flight is not None and written_flag(case.deploy, case.facts, "max-num-seqs") is None:
        share = replace(choices.max_num_seqs, value=math.ceil(flight / choices.replicas.value))
        choices = replace(choices, max_num_seqs=share)
    return choices


def key(case: Case, name: str, value: object, now: object) -> str:
    """ "quantization.kv_cache: fp8", with what the file says of it now and where."""
    said = f"{name}: {value}"
    return f"{said} instead of {now} ({case.deploy.because(name)})" if case.deploy.written(name) else said


def flag(case: Case, name: str, value: object, now: object) -> str:
    """ "engine.args: {max-num-seqs: 64}", the same for a flag."""
    said = f"engine.args: {{{name}: {value}}}"
    written = written_flag(case.deploy, case.facts, name)
    return f"{said} instead of {now} ({written[1]})" if written is not None else said
