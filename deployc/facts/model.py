"""Model facts: config.json, the headers of the weights, the names and digests of the rest.

In: a `Source`. Out: `ModelFacts` and notes. Of the weights only the headers are read; where there are none, the
shapes follow from the architecture, and a note says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from deployc.diagnostics import Diagnostic, note
from deployc.facts import faults
from deployc.facts.architecture import WHOLES, architecture
from deployc.facts.assume import applied, check_used
from deployc.facts.headers import INDEX, SINGLE, check_shard, read_header, shards
from deployc.facts.promise import check_promise, is_tied_output
from deployc.facts.shapes import shapes
from deployc.facts.source import Entry, Hub, Source, pinned, read_json
from deployc.types.config import quantization
from deployc.types.facts import ModelFacts, pickles
from deployc.types.groups import Tensor, compress

_EMBEDDINGS = ("embed_tokens.weight", "wte.weight", "word_embeddings.weight", "embed_in.weight", "embeddings.weight")
_PARALLEL = 8  # shards whose headers are fetched at once


def model_facts(
    source: Source, shown: str, assume: Mapping[str, Any] | None = None
) -> tuple[ModelFacts, list[Diagnostic]]:
    """All that is known of a model without its weights; `shown` is the source as the deploy.yaml names it.

    With `assume` config.json is read as if it said so; then the headers alone say what the weights are.
    Raises Fault: whatever the source itself cannot do, and DC202-DC210, DC222, DC227 for what lies in it.
    """
    files = source.files()
    if "config.json" not in files:
        fix = _adapter_fix(source) if "adapter_config.json" in files else ""
        raise faults.missing_file(
            "config.json", source.where, fix or "Name the folder or repository of the model itself."
        )
    config = read_json(source, "config.json")
    tensors = weights(source, files)
    embeddings, assume = _embedding_dtype(tensors or []), assume or {}
    as_if, words = applied(config, assume)
    arch = architecture(as_if, embeddings, words, _preprocessor(source, files, config))
    notes: list[Diagnostic] = []
    if tensors is None:
        groups = shapes(as_if, arch)
        if not pickles(files):  # what they ask for is a rule's
            notes.append(_derived(source.where))
    else:
        if not assume and not quantization(config):
            notes += check_promise(config, arch, tensors, source.where)
        # a checkpoint that stores a tied output layer all the same: engines load the embeddings once
        groups = compress(t for t in tensors if not is_tied_output(t[0], arch))
    if assume:
        check_used(config, assume, lambda other, said: _read(other, embeddings, said, shaped=tensors is None))
    generation = read_json(source, "generation_config.json") if "generation_config.json" in files else {}
    facts = ModelFacts(
        source=shown,
        hub=source.hub,
        revision=source.revision,
        config=config,
        architecture=arch,
        tensors=groups,
        weights_basis="architecture" if tensors is None else "header",
        provenance="",
        files=pinned(files),
        generation_config=generation,
        chat_template=_has_chat_template(source, files),
        gated=source.gated,
        assume=assume,
    )
    return facts, notes


def _adapter_fix(source: Source) -> str:
    """An adapter's folder where the model's belongs: what its own config names as the model."""
    base = read_json(source, "adapter_config.json").get("base_model_name_or_path")
    named = f"{base}, its base model," if isinstance(base, str) and base else "its base model"
    return f"This is an adapter: name {named} as model.source, and this folder under adapters."


def _preprocessor(source: Source, files: Mapping[str, Entry], config: Mapping[str, Any]) -> Mapping[str, Any]:
    """preprocessor_config.json of a model with several modalities; empty where there is none. Raises Fault DC203."""
    name = "preprocessor_config.json"
    return read_json(source, name) if name in files and config.get("model_type") in tuple(WHOLES) else {}


def _read(config: Mapping[str, Any], embeddings: str | None, words: Mapping[str, str], *, shaped: bool) -> object:
    """What config.json alone says of a model."""
    arch = architecture(config, embeddings, words)
    return arch, shapes(config, arch) if shaped else ()


def from_config(
    config: Mapping[str, Any],
    *,
    source: str,
    hub: Hub,
    provenance: str,
    chat_template: bool,
    revision: str | None = None,
) -> ModelFacts:
    """Facts of a model whose source was not read: `provenance` says where its config.json comes from.

    Raises Fault as `architecture` and `shapes` do.
    """
    arch = architecture(config)
    return ModelFacts(
        source=source,
        hub=hub,
        revision=revision,
        config=dict(config),
        architecture=arch,
        tensors=shapes(config, arch),
        weights_basis="architecture",
        provenance=provenance,
        files={},
        chat_template=chat_template,
    )


def weights(source: Source, files: Mapping[str, Entry]) -> list[Tensor] | None:
    """Every tensor that the headers name; None where the source has no weights, or pickles, which have no headers.

    Raises Fault DC204-DC206.
    """
    if INDEX in files:
        return _sharded(source, files)
    if SINGLE in files:
        return read_header(SINGLE, files[SINGLE].size, source.where, source.range)
    other = [name for name in files if name.endswith(".safetensors") and not name.startswith("adapter_")]
    if other:
        raise faults.bad_shards(
            source.where, f"it has {', '.join(sorted(other)[:3])} but neither {SINGLE} nor {INDEX}."
        )
    for suffix, kind in ((".gguf", "GGUF"), (".pth", "pickle")):
        if not pickles(files) and (found := sorted(name for name in files if name.endswith(suffix))):
            raise faults.only_other_weights(source.where, ", ".join(found[:3]), kind)
    return None


def _sharded(source: Source, files: Mapping[str, Entry]) -> list[Tensor]:
    from concurrent.futures import ThreadPoolExecutor

    placed = shards(read_json(source, INDEX), {name: entry.size for name, entry in files.items()}, source.where)

    def one(file: str) -> list[Tensor]:
        tensors = read_header(file, files[file].size, source.where, source.range)
        check_shard(file, placed[file], tensors, source.where)
        return tensors

    with ThreadPoolExecutor(_PARALLEL) as pool:
        return [tensor for tensors in pool.map(one, placed) for tensor in tensors]


def _embedding_dtype(tensors: Sequence[Tensor]) -> str | None:
    return next((dtype for name, dtype, _ in tensors if name.endswith(_EMBEDDINGS)), None)


def _has_chat_template(source: Source, files: Mapping[str, Entry]) -> bool:
    if any(name.startswith("chat_template.") for name in files):
        return True
    return "tokenizer_config.json" in files and bool(read_json(source, "tokenizer_config.json").get("chat_template"))


def _derived(where: str) -> Diagnostic:
    detail = f"{where} has config.json but no weights; tensor shapes are derived from the architecture it describes."
    fix = "Enough to plan with; building and serving need the weights there."
    return note("DC207", "planned without the model's weights", detail, fix)
