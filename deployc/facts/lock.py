"""deploy.lock: what was asked, what it was pinned to, and all facts of it, so that a plan needs nothing else.

JSON with sorted keys, one tensor group, flag or file a line; the same facts give the same bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deployc import files
from deployc.diagnostics import Diagnostic, ExitCode, Report, Span, Stop, error, note
from deployc.facts.codec import Malformed, decode, encode
from deployc.facts.source import is_folder
from deployc.types.facts import DTYPE_BYTES, MOST_CARDS, AdapterFacts, EngineFacts, Facts, GpuFacts, ModelFacts, Spec
from deployc.types.groups import expand
from deployc.types.runner import RunnerRule

if TYPE_CHECKING:
    from deployc.spec.deploy import Deploy

VERSION = 3
_LARGEST = 64 * 2**20  # bytes: no lockfile comes near
_WIDTH = 110
_MOST = 2**63  # of any size or rate in facts
_DIMENSIONS = ("layers", "hidden_size", "heads", "kv_heads", "head_dim", "vocab_size", "max_position_embeddings")
_LINES = ("tensors", "flags")  # each entry of these stands on one line, however long


Assume = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Cards:
    """Cards of one kind, as many as stand in a row."""

    count: int
    gpu: GpuFacts


@dataclass(frozen=True, slots=True)
class Lock:
    """A lockfile. `asked` maps dotted keys of the deploy.yaml to what it said when this was locked."""

    lock_version: int
    asked: Mapping[str, Any]
    model: ModelFacts
    adapters: tuple[AdapterFacts, ...]
    cards: tuple[Cards, ...]
    engine: EngineFacts

    @property
    def devices(self) -> tuple[GpuFacts, ...]:
        """One entry a card, as `Facts` has them."""
        return tuple(card.gpu for card in self.cards for _ in range(card.count))


def asked(deploy: Deploy) -> dict[str, Any]:
    """All that the facts depend on, by dotted key: where one of these changes, the lockfile answers no longer."""
    hardware = deploy.hardware.model_dump(
        mode="json", include={"gpu", "count", "devices", "interconnect", "host_memory"}
    )
    model: dict[str, Any] = {"source": deploy.model.source}
    if not is_folder(deploy.model.source):
        model |= {"hub": deploy.model.hub, "revision": deploy.model.revision}
    keys: dict[str, Any] = {f"model.{key}": value for key, value in model.items()}
    for index, adapter in enumerate(deploy.adapters):
        keys |= {f"adapters.{index}.{key}": getattr(adapter, key) for key in ("name", "source", "revision")}
    keys |= {f"hardware.{key}": value for key, value in hardware.items()}
    return keys | {"engine.name": deploy.engine.name, "engine.version": deploy.engine.version}


def freeze(deploy: Deploy, facts: Facts) -> str:
    """The lockfile's text. What others hold on a card now, and its driver, are no facts of tomorrow and left out."""
    devices = [replace(device, used=0, driver="") for device in facts.devices]
    cards = tuple(Cards(len(list(run)), gpu) for gpu, run in groupby(devices))
    lock = Lock(VERSION, asked(deploy), facts.model, facts.adapters, cards, facts.engine)
    return _render(encode(lock), "", one_line=False) + "\n"


def read(path: Path) -> tuple[Lock | None, Report]:
    """The lockfile at `path`, or what is wrong with it: DC190 damaged, DC191 another version."""
    try:
        with path.open("rb") as file:
            raw = file.read(_LARGEST + 1)
        value = json.loads(raw.decode()) if len(raw) <= _LARGEST else None
        if not isinstance(value, dict) or "lock_version" not in value:
            return None, Report([_damaged(path, "it is no lockfile of deployc.")])
        if value["lock_version"] != VERSION:
            return None, Report([_other_version(path, value["lock_version"])])
        lock = decode(Lock, value)
        _check(lock)
    except OSError as wrong:
        return None, Report([_damaged(path, f"{wrong.strerror}.")])
    except json.JSONDecodeError as wrong:
        conflict = " It holds the marks of a merge conflict." if b"<<<<<<<" in raw else ""
        at = Span(path.name, wrong.lineno, wrong.colno, wrong.colno + 1)
        return None, Report([_damaged(path, f"line {wrong.lineno} is not JSON: {wrong.msg}.{conflict}", at)])
    except (UnicodeDecodeError, RecursionError):
        return None, Report([_damaged(path, "it is not JSON in UTF-8.")])
    except Malformed as wrong:
        return None, Report([_damaged(path, f"`{wrong.where}`: {wrong.why}.")])
    return lock, Report()


def facts_from(lock: Lock, deploy: Deploy, assume: Assume | None = None) -> tuple[Facts | None, Report]:
    """The facts that were locked, if the lockfile still answers this file; else DC192 for every key that changed.

    `assume` is what this command assumes of config.json; None where it leaves that to the lockfile.
    """
    report = Report()
    if assume and assume != lock.model.assume:
        report.add(_no_answer(_other_assumptions(lock.model.assume, assume), deploy.at("model.source")))
    now = asked(deploy)
    for key in sorted(now.keys() | lock.asked.keys()):
        if now.get(key) != lock.asked.get(key):
            if key == "hardware.gpu" and _unknown_card(deploy, report):
                continue
            said, says = (_shown(keys, key) for keys in (lock.asked, now))
            report.add(_no_answer(f"{key} is {says} here and was {said} when it was locked.", deploy.at(key)))
    if report.errors:
        return None, report
    if lock.model.provenance:
        report.add(_by_hand(lock.model, deploy.at("model.source")))
    return Facts(lock.model, lock.adapters, lock.devices, lock.engine, locked=True), report


def _unknown_card(deploy: Deploy, report: Report) -> bool:
    """Whether the file now names a card that nobody knows: said at once, as `deployc lock` would only say the same."""
    from deployc.facts import gpu

    written = deploy.hardware.gpu
    if not isinstance(written, str) or written in ("auto", "cpu"):
        return False
    return gpu.named(written, deploy.at("hardware.gpu"), report) is None


def write(path: Path, text: str) -> None:
    """Put the lockfile in place whole or not at all. Raises Stop DC196 where the disk refuses."""
    try:
        files.write(path, text, mode=0o644)
    except OSError as wrong:
        fix = "Make room or give write permission on that folder; the old lockfile is untouched."
        raise Stop(
            error("DC196", "the lockfile cannot be written", f"{path}: {wrong.strerror}.", fix), ExitCode.FAILED
        ) from None


def _check(lock: Lock) -> None:
    """What types do not say: dtypes that exist, patterns that name their count, at least one card."""
    _check_assumptions(lock.model)
    _check_adapters(lock)
    facts = [("model", lock.model.tensors), *((f"adapters.{i}", a.tensors) for i, a in enumerate(lock.adapters))]
    for owner, tensors in facts:
        for index, group in enumerate(tensors):
            try:
                expand(group)
                known = group.dtype in DTYPE_BYTES and all(0 <= size <= _MOST for size in group.shape)
            except ValueError as wrong:
                raise Malformed(str(wrong)).under(f"{owner}.tensors.{index}") from None
            if not known:
                raise Malformed("no such dtype, or a size that cannot be").under(f"{owner}.tensors.{index}")
    if not lock.cards or any(card.count < 1 for card in lock.cards):
        raise Malformed("at least one card is expected").under("cards")
    if sum(card.count for card in lock.cards) > MOST_CARDS:
        raise Malformed(f"at most {MOST_CARDS:,} cards are expected").under("cards")
    _check_rules(lock)
    for where, value in _sizes(lock):
        if not 0 < value <= _MOST:
            raise Malformed(f"{value:g} cannot be").under(where)


def _check_rules(lock: Lock) -> None:
    """Rules of the engine end in one for every model, and in one for all cards of the lockfile's kind."""
    if not any(rule == RunnerRule(rule.runner) for rule in lock.engine.model_runners):
        raise Malformed("no rule holds for every model").under("engine.model_runners")
    kind = "cpu" if lock.cards[0].gpu.name == "cpu" else "gpu"
    plain = [r for r in lock.engine.batch_defaults if not r.keys() & {"min_memory", "gpu", "not_gpu"}]
    if not any(r.get("device", "gpu") == kind for r in plain):
        raise Malformed("no rule holds for every card").under("engine.batch_defaults")
    for index, rule in enumerate(lock.engine.batch_defaults):
        if not all(type(rule.get(count)) is int and 0 < rule[count] <= _MOST for count in ("tokens", "seqs")):
            raise Malformed("counts of tokens and sequences are expected").under(f"engine.batch_defaults.{index}")
        if type(rule.get("min_memory", 0)) is not int:
            raise Malformed("bytes of memory are expected").under(f"engine.batch_defaults.{index}.min_memory")
    if not all(re.fullmatch(r"[0-9]{1,2}\.[0-9]", one) for one in lock.engine.compute_capabilities):
        raise Malformed("compute capabilities, as 8.9, are expected").under("engine.compute_capabilities")
    if lock.engine.version != lock.asked.get("engine.version"):
        raise Malformed("another version than was asked for").under("engine.version")


def _check_adapters(lock: Lock) -> None:
    """Those that were asked for, in that order, with numbers and names as an adapter is read with."""
    wanted = [lock.asked[key] for key in (f"adapters.{i}.name" for i in range(len(lock.asked))) if key in lock.asked]
    if wanted != [adapter.name for adapter in lock.adapters]:
        raise Malformed("other adapters than were asked for").under("adapters")
    for index, adapter in enumerate(lock.adapters):
        from deployc.facts.adapter.read import odd

        if wrong := odd(adapter.config):
            raise Malformed(wrong).under(f"adapters.{index}.config")


def _check_assumptions(model: ModelFacts) -> None:
    try:
        _ = model.read_config
    except LookupError as wrong:
        raise Malformed(f"config.json has no object {wrong}").under("model.assume") from None


def _sizes(lock: Lock) -> Iterator[tuple[str, float]]:
    """Every number that must be more than nothing, with its dotted path."""
    for name in _DIMENSIONS:
        yield f"model.architecture.{name}", getattr(lock.model.architecture, name)
    for index, card in enumerate(lock.cards):
        figures: dict[str, Spec | None] = {f"flops.{kind}": spec for kind, spec in card.gpu.flops.items()}
        figures |= {key: getattr(card.gpu, key) for key in ("memory", "bandwidth", "interconnect_bandwidth")}
        yield from ((f"cards.{index}.gpu.{key}", spec.value) for key, spec in figures.items() if spec is not None)
    yield "engine.gpu_memory_utilization", lock.engine.gpu_memory_utilization
    if lock.engine.block_size is not None:
        yield "engine.block_size", lock.engine.block_size


def _render(value: Any, margin: str, one_line: bool) -> str:
    compact = json.dumps(value, ensure_ascii=False, sort_keys=True)
    if one_line or not isinstance(value, dict | list) or len(margin) + len(compact) <= _WIDTH:
        return compact
    inner = margin + "  "
    if isinstance(value, list):
        lines = [_render(item, inner, one_line) for item in value]
        if all(isinstance(item, str) for item in value):
            lines = _filled(lines, _WIDTH - len(inner))
        return "[\n" + ",\n".join(inner + line for line in lines) + f"\n{margin}]"
    lines = [
        f"{inner}{json.dumps(key, ensure_ascii=False)}: {_entries(key, value[key], inner)}" for key in sorted(value)
    ]
    return "{\n" + ",\n".join(lines) + f"\n{margin}}}"


def _filled(words: Iterable[str], width: int) -> list[str]:
    """Words, commas between them, as many on a line as there is room for."""
    lines: list[str] = []
    for word in words:
        if lines and len(lines[-1]) + 2 + len(word) <= width:
            lines[-1] += f", {word}"
        else:
            lines.append(word)
    return lines


def _entries(key: str, value: Any, margin: str) -> str:
    if key not in _LINES or not value:
        return _render(value, margin, one_line=False)
    inner = margin + "  "
    if isinstance(value, list):
        return "[\n" + ",\n".join(inner + _render(v, inner, one_line=True) for v in value) + f"\n{margin}]"
    lines = [f"{inner}{json.dumps(k)}: {_render(value[k], inner, one_line=True)}" for k in sorted(value)]
    return "{\n" + ",\n".join(lines) + f"\n{margin}}}"


def _shown(keys: Mapping[str, Any], key: str) -> str:
    return f"{keys[key]!r:.60}" if keys.get(key) is not None else "not given"


def _damaged(path: Path, detail: str, at: Span | None = None) -> Diagnostic:
    fix = "Write it anew with `deployc lock`, or take it from version control; it is not meant to be edited."
    return error("DC190", "the lockfile is damaged", f"{path.name}: {detail}", fix, at)


def _other_version(path: Path, version: Any) -> Diagnostic:
    detail = f"{path.name} has lock_version {version!r:.40}; this deployc reads {VERSION}."
    fix = "Write it anew with `deployc lock`, or use the deployc that wrote it."
    return error("DC191", "the lockfile is of another version", detail, fix)


def _no_answer(detail: str, at: Span | None) -> Diagnostic:
    fix = "Run `deployc lock` and review what changed in deploy.lock."
    return error("DC192", "the lockfile does not answer this file", detail, fix, at)


def _other_assumptions(then: Assume, now: Assume) -> str:
    differing = sorted(k for k in now.keys() | then.keys() if now.get(k, now) != then.get(k, then))
    return f"--assume: {', '.join(differing)} is assumed here in another way than when it was locked."


def _by_hand(model: ModelFacts, at: Span | None) -> Diagnostic:
    detail = f"The facts of {model.source} in the lockfile: {model.provenance}."
    fix = "`deployc lock --upgrade` reads them from the source."
    return note("DC221", "model facts not read from the source", detail, fix, at)
