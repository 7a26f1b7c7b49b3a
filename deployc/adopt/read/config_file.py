"""A YAML for `vllm serve --config` -> a `FoundLaunch`: its keys are flags, its values theirs."""

from __future__ import annotations

from collections.abc import Iterator

from deployc.source.tree import Map, Scalar, plain
from deployc.types.launch import FoundFlag, FoundLaunch, Piece

_MODEL = ("model", "model_tag", "model-tag")
_OTHERS = {"version", "services", "apiVersion", "kind", "jobs", "steps", "on"}
_COMMON = {
    *("model", "tensor-parallel-size", "max-model-len", "gpu-memory-utilization", "served-model-name", "dtype", "host"),
    *(
        "max-num-seqs",
        "max-num-batched-tokens",
        "kv-cache-dtype",
        "quantization",
        "enforce-eager",
        "enable-prefix-caching",
    ),
    *("trust-remote-code", "async-scheduling", "compilation-config", "enable-lora"),
}
"""Flags of which a file for --config has at least one."""


def is_config(root: Map) -> bool:
    """Whether the map is one: it has a key that vLLM's own reader knows, and none of other well-known files."""
    names = {key.replace("_", "-").removeprefix("no-") for key in root.entries}
    return bool(names & _COMMON) and not names & _OTHERS


def launches(root: Map) -> Iterator[FoundLaunch]:
    """The one launch. A key that is false leaves its switch out, as vLLM's own reader does."""
    model = next((root.entries[key] for key in _MODEL if isinstance(root.entries.get(key), Scalar)), None)
    flags = [
        FoundFlag(key, None if isinstance(node, Scalar) and node.value is None else plain(node), root.keys[key])
        for key, node in root.entries.items()
        if key not in _MODEL
    ]
    yield FoundLaunch(
        source="config",
        at=root.span,
        program=(Piece("vllm", root.span), Piece("serve", root.span)),
        model=Piece(model.text, model.span) if isinstance(model, Scalar) else None,
        flags=tuple(flags),
    )
