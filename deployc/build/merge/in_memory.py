"""Starting peft's own merge in the build interpreter, where the host has the memory that it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deployc.build import process
from deployc.build.available import available
from deployc.build.weights.safetensors_file import Reader
from deployc.diagnostics import Report, Stop, error
from deployc.facts.adapter import weights_file
from deployc.facts.promise import is_tied_output
from deployc.rules.adapter_shapes.in_memory import too_little
from deployc.types.facts import AdapterFacts, ModelFacts
from deployc.types.groups import expand
from deployc.types.manifest import Progress

MODULE = "deployc.build.merge.by_peft"


@dataclass(frozen=True, slots=True)
class Whole:
    """A merge that peft makes: the model's folder and shards, the adapter and its folder, the dtype to be saved in."""

    model: ModelFacts
    folder: Path
    shards: tuple[str, ...]
    adapter: AdapterFacts
    adapter_folder: Path
    dtype: str


def merge(
    what: Whole, into: Path, *, interpreter: str, lock: int, progress: Callable[[Progress], None], threads: int | None
) -> Mapping[str, Any]:
    """The merged model in `into`, emptied before: its files as transformers saves them, synced.

    Returns {shards, model, adapters, versions, seconds, torch, threads}: {bytes, sha256} by name of what was written,
    of the model's shards and of the adapter as they were read. Raises Stop DC249 where memory is short, and the
    process's own.
    """
    free = available()
    if free is not None and (wrong := too_little(what.model, [what.adapter], free)):
        raise Stop(Report(wrong))
    into.mkdir(exist_ok=True)
    for path in into.iterdir():
        path.unlink()
    weights = what.adapter_folder / weights_file(what.adapter.files)
    job = {
        "into": str(into.absolute()),
        "model": str(what.folder.absolute()),
        "source": what.model.source,
        "shards": list(what.shards),
        "adapter": {"name": what.adapter.name, "path": str(weights.absolute())},
        "dtype": what.dtype,
        "threads": threads,
    }
    result = process.run(interpreter, job, lock, progress, module=MODULE)
    _same_names(what, into, result["shards"])
    return result


def _same_names(what: Whole, into: Path, written: Iterable[str]) -> None:
    """Formats and `ignore` go by the model's own names: transformers must have saved it under them."""
    wanted = {name: group.shape for group in what.model.tensors for name in expand(group)}
    found: dict[str, tuple[int, ...]] = {}
    for shard in written:
        with Reader(into / shard, what.model.source) as reader:
            found |= {slot.name: slot.shape for slot in reader.slots}
    odd = sorted(
        name
        for name in wanted.keys() | found.keys()
        if wanted.get(name) != found.get(name)
        and not is_tied_output(name, what.model.architecture)
        and not name.endswith("rotary_emb.inv_freq")
    )
    if odd:
        detail = f"{what.adapter.name}: transformers saves {what.model.source} with other tensors, {odd[0]} for one."
        fix = "Merge it yourself with peft and name the merged folder as model.source."
        raise Stop(error("DC238", "this feature of an adapter is not supported yet", detail, fix))
