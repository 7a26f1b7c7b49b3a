"""From a choice to the keys of deploy.yaml that would have to say it, and no more of them than that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from deployc.choose.decide import decide
from deployc.choose.tune.space import OPEN, Candidate, released, with_values
from deployc.choose.tune.verdict import without_limits
from deployc.spec.deploy import Deploy
from deployc.types.choices import Choices
from deployc.types.facts import Facts

Path = tuple[str, ...]
FIELDS = {
    "weights": "weights",
    "kv_cache": "kv_cache_dtype",
    "tensor": "tensor_parallel_size",
    "replicas": "replicas",
    "max_model_len": "max_model_len",
    "max_num_seqs": "max_num_seqs",
    "max_num_batched_tokens": "max_num_batched_tokens",
}
"""Where `Choices` has what `space.OPEN` names."""
ROUNDS = (
    ("weights", "kv_cache"),
    ("tensor", "replicas"),
    ("max_num_seqs", "max_num_batched_tokens"),
    ("max_model_len",),
)
"""In the order of decisions: what comes later follows from what comes before, and may need no word of its own."""


@dataclass(frozen=True, slots=True)
class Change:
    """A key of the file and its new value. `name`: that of `space.OPEN`, or the key where it is one of `hardware`."""

    name: str
    path: Path
    value: str | int


def value_of(choices: Choices, name: str) -> str | int:
    """What was chosen under a name of `space.OPEN`."""
    value: str | int = getattr(choices, FIELDS[name]).value
    return value


def changes(deploy: Deploy, facts: Facts, chosen: Candidate, free: Iterable[str] = ()) -> list[Change]:
    """In the order of the file. With them written, `plan` chooses the same configuration."""
    found = list(_hardware(deploy, facts, chosen))
    now = with_values(deploy, hardware={change.path[-1]: change.value for change in found})
    here = replace(facts, devices=chosen.cards.devices)
    written = _written_flags(deploy, facts, free)
    for names in ROUNDS:
        usual = decide(without_limits(now), here)[0]
        for name in names:
            wanted = value_of(chosen.choices, name)
            if usual is not None and wanted != value_of(usual, name):
                change = Change(name, _path(deploy, name, written), wanted)
                found.append(change)
                now = applied(now, change)
    return found


def applied(deploy: Deploy, change: Change) -> Deploy:
    """The file's values with one of them changed."""
    section, last = change.path[:-1], change.path[-1]
    if section == ("quantization",):
        return with_values(deploy, quantization={last: change.value})
    if section == ("engine", "parallel"):
        return with_values(deploy, parallel={last: change.value})
    if section == ("hardware",):
        return with_values(deploy, hardware={last: change.value})
    return with_values(deploy, args=deploy.engine.args | {last: change.value})


def _hardware(deploy: Deploy, facts: Facts, chosen: Candidate) -> Iterator[Change]:
    cards = chosen.cards
    if cards.written is not None and cards.written != deploy.hardware.gpu:
        yield Change("hardware.gpu", ("hardware", "gpu"), cards.written)
    listed = isinstance(deploy.hardware.gpu, list) and cards.written is not None
    before = deploy.hardware.count if not isinstance(deploy.hardware.gpu, list) else len(facts.devices)
    if cards.count != before or (listed and cards.count > 1):
        yield Change("hardware.count", ("hardware", "count"), cards.count)


def _written_flags(deploy: Deploy, facts: Facts, free: Iterable[str]) -> dict[str, str]:
    """Free names that the file sets in `engine.args`, and how the flag is spelled there."""
    kept = released(deploy, facts, free).engine.args
    spelled = {facts.engine.canonical(key): key for key in deploy.engine.args if key not in kept}
    return {name: spelled[flag] for name, (_, flag) in OPEN.items() if flag in spelled}


def _path(deploy: Deploy, name: str, written: dict[str, str]) -> Path:
    key, flag = OPEN[name]
    if name in written:
        return ("engine", "args", written[name])
    if key:
        return tuple(key.split("."))
    underscores = any("_" in other for other in deploy.engine.args) and not any("-" in o for o in deploy.engine.args)
    return ("engine", "args", flag.replace("-", "_") if underscores else flag)
