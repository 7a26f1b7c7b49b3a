"""What is known of the engine beyond one version's own facts: tool data, in no lockfile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from deployc.types.drivers import Drivers
from deployc.types.exposure import Exposure
from deployc.types.formats import Formats
from deployc.types.registries import Registries


@dataclass(frozen=True, slots=True)
class Gone:
    """A flag of `vllm serve` that went."""

    gone: str  # the first version without it
    source: str
    why: str = ""  # what became of what it did
    instead: str = ""  # what to set in deploy.yaml, with `{value}` for the value written; "" = nothing is needed
    useless: str = ""  # the version from which on it did nothing; "" = it did what it said to the end

    def put(self, value: str) -> str:
        """What to set in deploy.yaml instead, for this value of the flag."""
        return self.instead.format(value=value)


@dataclass(frozen=True, slots=True)
class Remark:
    """What is to be said of a setting that the engine takes: a flag, a key of a flag's map ("compilation-config.mode"),
    a variable of the environment.

    A text in `values`, `beside` and `unless` is the value itself, or `>20`, `>=8`, `<1` (numbers), `!x` (anything
    else), `!%16` (no multiple of it), `*x*` (holds x); none at all = any value. `beside` and `unless` name settings of
    the same kinds, and what `rules/settings.py` says of the deployment ("model.quantization", "hardware.gpu" …).
    """

    name: str
    code: str
    severity: Literal["error", "warning", "note"]
    says: str  # `{value}` is the value written, `{version}` the engine's
    fix: str
    source: str
    values: tuple[str, ...] = ()
    since: str = ""  # the first version of which it holds; "" = of every one
    until: str = ""  # the first version of which it no longer holds
    beside: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # all of these must be set
    unless: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # none of these may be set


@dataclass(frozen=True, slots=True)
class Hole:
    """A security hole of the engine that others published."""

    name: str  # of the advisory
    fixed: str  # the first version without it
    what: str
    severity: Literal["warning", "note"]  # code may run or another model be loaded; callers can stop or slow it
    source: str
    came: str = ""  # the first version with it; "" = not known


@dataclass(frozen=True, slots=True)
class Foreign:
    """A variable that another server reads, or that nobody does."""

    whose: str  # "Text Generation Inference"; "" = nobody's
    says: str
    fix: str


@dataclass(frozen=True, slots=True)
class Lore:
    """Each field is a file of profiles/engines/, read for one version."""

    gone: Mapping[str, Gone] = field(default_factory=dict)  # by flag, those that this version no longer has
    formats: Formats = field(default_factory=Formats)  # of weights: kernels, and what is refused
    going: Mapping[str, Gone] = field(default_factory=dict)  # those that went after this version
    came: Mapping[str, str] = field(default_factory=dict)  # flag that it does not have yet -> the first that does
    keys: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)  # flag -> keys of its map -> if others stop it
    other_keys: Mapping[str, str] = field(default_factory=dict)  # "compilation-config.level" -> "went in vLLM 0.18.0"
    notions: Mapping[str, str] = field(default_factory=dict)  # what people write as if it were a flag -> what to know
    remarks: tuple[Remark, ...] = ()  # those that hold of this version
    elsewhen: Mapping[str, str] = field(default_factory=dict)  # variable of other versions -> "came in vLLM 0.20.0"
    instead: Mapping[str, str] = field(default_factory=dict)  # variable that went -> what to set, as in `Gone`
    foreign: Mapping[str, Foreign] = field(default_factory=dict)  # by variable; "SGLANG_*" = all that begin so
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # variable -> the values that it may have
    numbers: tuple[str, ...] = ()  # variables that the engine hands to int() or float()
    accepts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # checkpoint's method -> --quantization
    meant: Mapping[str, str] = field(
        default_factory=dict
    )  # what people write as a method of --quantization -> what to set
    backends: tuple[str, ...] = ()  # of attention, by name
    needs_checkpoint: tuple[str, ...] = ()  # values of --quantization that read a checkpoint already quantized
    holes: tuple[Hole, ...] = ()  # those that this version has
    drivers: Drivers = field(default_factory=Drivers)  # of NVIDIA, by what they run, and the engine's images
    exposure: Exposure = field(default_factory=Exposure)  # what its key does not guard
    registries: Registries = field(default_factory=Registries)  # classes of models, parsers
    newest: str = ""  # version of the catalogue
    v1_alone: str = ""  # the first version without the engine before V1
    behind: int = 0  # minor releases between this version and the newest


NO_LORE = Lore()
"""Facts as RESOLVE hands them on: `pipeline` puts the rest in beside them."""
