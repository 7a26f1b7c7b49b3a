"""What one value cannot say: keys that need, exclude or contradict each other. No facts of model or card are needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from deployc.diagnostics import Diagnostic, warning
from deployc.source.tree import Path
from deployc.spec import faults
from deployc.spec.faults import fault
from deployc.spec.written import Written
from deployc.types.facts import MOST_CARDS


def sense(written: Written) -> Iterator[Diagnostic]:
    """DC160-DC163, DC167, DC171 and DC173: one generator a section."""
    yield from _workload(written)
    yield from _model(written)
    yield from _adapters(written)
    yield from _cards(written)
    yield from _references(written)


def _workload(written: Written) -> Iterator[Diagnostic]:
    load = written.section("workload")
    stated = [key for key in ("concurrency", "request_rate") if load.get(key) is not None]
    if load and len(stated) != 1:
        which = "concurrency is a closed loop, request_rate an open one; the load is one of the two, "
        if stated:
            fix, at = "remove one of them", written.at_key("workload", "request_rate")
        else:
            fix = "add concurrency: 8, the requests in flight at once, or request_rate: 2/s, the arrivals"
            at = written.at_key("workload")
        yield fault(faults.LOAD, f"{which}and {'both are' if stated else 'neither is'} given.", fix, at)
    for key in ("input_tokens", "output_tokens"):
        mean, p95 = written.whole("workload", key, "mean"), written.whole("workload", key, "p95")
        if mean is not None and p95 is not None and p95 < mean:
            detail = f"`workload.{key}`: p95 {p95:,} < mean {mean:,} tokens."
            yield fault(faults.PERCENTILE, detail, "correct one of them", written.at("workload", key, "p95"))
    shared = written.whole("workload", "shared_prefix_tokens")
    whole = written.whole("workload", "input_tokens") or written.whole("workload", "input_tokens", "mean")
    if shared is not None and whole is not None and shared > whole:
        detail = f"`workload.shared_prefix_tokens` is {shared:,}, input_tokens {whole:,}; the prefix is part of it."
        fix = "count the prefix in input_tokens"
        yield fault(faults.PREFIX, detail, fix, written.at("workload", "shared_prefix_tokens"))


def _model(written: Written) -> Iterator[Diagnostic]:
    sources = [written.get("model", "source")]
    sources += [adapter.get("source") for adapter in written.items("adapters") if isinstance(adapter, dict)]
    if all(isinstance(source, str) and source.startswith(("./", "../", "/", "~")) for source in sources):
        for key in ("hub", "endpoint"):
            if written.get("model", key) is not None:
                detail = f"`model.{key}` says nothing about a folder, and nothing here lies on a hub."
                yield warning(*faults.NO_HUB, detail, "remove the key", written.at_key("model", key))


def _adapters(written: Written) -> Iterator[Diagnostic]:
    seen: dict[str, int] = {}
    for index, adapter in enumerate(written.items("adapters")):
        name = adapter.get("name") if isinstance(adapter, dict) else None
        if not isinstance(name, str):
            continue
        if name in seen:
            first = written.at("adapters", seen[name], "name")
            detail = f"`{name}` is the adapter on line {first.line if first else '?'} already."
            yield fault(faults.TWICE, detail, "rename one of the two", written.at("adapters", index, "name"))
        seen.setdefault(name, index)


def _cards(written: Written) -> Iterator[Diagnostic]:
    gpu, count = written.get("hardware", "gpu"), written.whole("hardware", "count")
    devices = written.get("hardware", "devices")
    listed = len(gpu) if isinstance(gpu, list) else None
    if listed == 0:
        yield fault(faults.CARDS, "`hardware.gpu` lists no card.", "name at least one", written.at("hardware", "gpu"))
    elif listed is not None and listed > MOST_CARDS:
        detail = f"`hardware.gpu` lists {listed:,} cards; at most {MOST_CARDS:,} are planned for."
        yield fault(faults.CARDS, detail, "list those of one deployment", written.at("hardware", "gpu"))
    elif listed is not None and count is not None and listed != count:
        detail = f"`hardware.gpu` lists {listed}, `hardware.count` says {count}."
        yield fault(faults.CARDS, detail, f"write count: {listed}, or remove it", written.at("hardware", "count"))
    cards = listed or count or 1
    if gpu == "cpu" and (cards > 1 or devices):
        key = "count" if cards > 1 else "devices"
        detail = f"`gpu: cpu` is this host and has no cards, `hardware.{key}` counts some."
        yield fault(faults.CARDS, detail, "remove the key", written.at_key("hardware", key))
    elif isinstance(devices, list) and len(devices) != cards:
        detail = f"`hardware.devices` names {len(devices)}, `hardware.{'gpu' if listed else 'count'}` says {cards}."
        fix = f"write count: {len(devices)}, or name {cards}"
        yield fault(faults.CARDS, detail, fix, written.at("hardware", "devices"))
    for index, device in _repeated(devices):
        detail = f"`hardware.devices` names {device} twice; one engine holds a card once."
        yield fault(faults.CARDS, detail, "name each card once", written.at("hardware", "devices", index))


def _repeated(devices: object) -> Iterator[tuple[int, object]]:
    known = [device for device in devices if isinstance(device, int | str)] if isinstance(devices, list) else []
    twice = {device for device, times in Counter(known).items() if times > 1}
    for device in twice:
        yield len(known) - 1 - known[::-1].index(device), device


def _references(written: Written) -> Iterator[Diagnostic]:
    for key in ("api_key", "hub_token"):
        path: Path = ("target", key)
        reference = written.get(*path)
        if not isinstance(reference, dict):
            continue
        given = [name for name in ("env", "file") if reference.get(name) is not None]
        if len(given) != 1:
            detail = (
                f"`target.{key}` takes exactly one of env and file, and {'both are' if given else 'neither is'} given."
            )
            yield fault(faults.REFERENCE, detail, "write {env: NAME} or {file: PATH}", written.at(*path))
