"""Settings that change the engine's memory and that the cost model does not follow: said, not passed over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from deployc.cost.kv_cache.element import ELEMENT_BYTES
from deployc.diagnostics import Diagnostic, warning
from deployc.rules.case import Case
from deployc.rules.settings import served_method

FLAGS: Mapping[str, str] = {
    "kv-cache-memory-bytes": "the KV cache takes that much, whatever gpu_memory_utilization leaves",
    "num-gpu-blocks-override": "the KV cache has so many blocks, whether or not they fit",
    "block-size": "blocks and pages have another size",
    "mamba-block-size": "blocks of states have another size",
    "mamba-cache-mode": "other states are kept",
    "mamba-cache-dtype": "states have another type",
    "mamba-ssm-cache-dtype": "states have another type",
    "kv-cache-dtype": "keys and values take fewer bits than are counted",
    "kv-cache-dtype-skip-layers": "some layers keep 16 bit",
    "disable-hybrid-kv-cache-manager": "layers with a window keep every token",
    "disable-sliding-window": "layers with a window keep every token, of a context no longer than it",
    "offload-backend": "a part of the weights lies in host memory",
    "quantization": "weights are quantized while they load",
    "pipeline-parallel-size": "layers are spread over more cards",
    "data-parallel-size": "requests and experts are spread over more cards",
    "decode-context-parallel-size": "the KV cache is spread over cards",
    "prefill-context-parallel-size": "prompts are spread over cards",
    "enable-expert-parallel": "experts are moved whole, not cut",
    "mm-encoder-tp-mode": "encoders are spread in another way",
    "speculative-config": "a draft model takes weights and KV of its own",
    "compilation-config": "compilation and CUDA graphs may take more or less",
    "optimization-level": "compilation and CUDA graphs may take more or less",
    "cudagraph-capture-sizes": "other CUDA graphs are captured",
    "max-cudagraph-capture-size": "other CUDA graphs are captured",
    "limit-mm-per-prompt": "encoders are profiled with other items, or left out",
    "language-model-only": "encoders are left out",
    "skip-mm-profiling": "encoders are not profiled",
}
"""By flag of the engine, what it changes (vllm/engine/arg_utils.py, 0.19.0 to 0.33.0)."""

VARIABLES: Mapping[str, str] = {
    "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS": "CUDA graphs are counted in the budget, or are not",
    "VLLM_USE_V2_MODEL_RUNNER": "another model runner profiles the memory",
    "PYTORCH_CUDA_ALLOC_CONF": "torch's allocator gives memory in other portions",
    "PYTORCH_ALLOC_CONF": "torch's allocator gives memory in other portions",
}
"""By variable of `engine.env`, what it changes (vllm/envs.py, 0.19.0 to 0.33.0)."""


def unfollowed(case: Case) -> Iterator[Diagnostic]:
    """One warning a setting, where it stands."""
    for written, value in case.deploy.engine.args.items():
        name = case.facts.engine.canonical(written)
        if name in FLAGS and not _changes_nothing(value) and _concerns(case, name, value):
            yield _warning(case, f"--{name}", FLAGS[name], ("engine", "args", written))
    for name in case.deploy.engine.env:
        if name in VARIABLES:
            yield _warning(case, name, VARIABLES[name], ("engine", "env", name))


def _concerns(case: Case, name: str, value: Any) -> bool:
    """A method that the weights are in already quantizes none of them; a model without a window loses none; of a cache
    whose elements have a known size the figures are right."""
    if name == "quantization":
        return served_method(case) == "none" and value not in case.facts.lore.needs_checkpoint
    if name == "kv-cache-dtype":
        return str(value) != "auto" and str(value) not in ELEMENT_BYTES
    if name == "disable-sliding-window":
        return bool(case.facts.model.language_config.get("sliding_window"))
    return True


def _changes_nothing(value: Any) -> bool:
    """A switch that is off, a count of none or one."""
    return value is None or value is False or (not isinstance(value, bool) and str(value) in ("", "0", "1"))


def _warning(case: Case, name: str, what: str, path: tuple[str, str, str]) -> Diagnostic:
    return warning(
        "DC308",
        "the memory figures do not follow this setting",
        f"With {name} {what}; the figures here are those without it.",
        "leave it out, or compare with the engine's own start log before you rely on them",
        case.deploy.at(path),
    )
