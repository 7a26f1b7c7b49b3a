"""What of an adapter the engine refuses to serve unmerged."""

from __future__ import annotations

from deployc.diagnostics import Diagnostic, Span, error
from deployc.rules.adapter_shapes.check import PLAIN_INITS
from deployc.rules.adapter_shapes.names import read
from deployc.types.facts import AdapterFacts
from deployc.types.groups import expand

_SWITCHES = ("use_dora", "lora_bias", "alora_invocation_tokens", "layer_replication", "use_bdlora", "use_qalora",
             "trainable_token_indices")  # fmt: skip
_CLASSIFIERS = ("classifier", "score")


def cannot_be_served(adapter: AdapterFacts, at: Span | None) -> list[Diagnostic]:
    """One error with all reasons (vllm/lora/peft_helper.py, `_validate_features`, `validate_legal`; lora_model.py and
    utils.py, `parse_fine_tuned_lora_name`: names that are refused; 0.32.0)."""
    config = adapter.config
    wrong = [f"`{key}` is {config[key]!r}" for key in _SWITCHES if config.get(key)]
    if (kind := config.get("peft_type", "LORA")) != "LORA":
        wrong.append(f"`peft_type` is {kind!r}")
    if others := [name for name in config.get("modules_to_save") or () if name not in _CLASSIFIERS]:
        wrong.append(f"`modules_to_save` has {', '.join(map(str, others))}")
    if config.get("bias", "none") != "none":
        wrong.append(f"`bias` is {config['bias']!r}")
    init = config.get("init_lora_weights")
    if isinstance(init, str) and init.lower() not in PLAIN_INITS:
        wrong.append(f"`init_lora_weights` is {init!r}, which changed the base's weights")
    if not wrong and (whole := _whole(adapter)):
        wrong.append(f"it replaces {whole[0]}" + (f" and {len(whole) - 1} more" if len(whole) > 1 else ""))
    if not wrong:
        return []
    detail = f"{adapter.name}: {'; '.join(wrong)}."
    return [error("DC242", "the engine cannot serve this adapter unmerged", detail, "Set mode: merge for it.", at)]


def _whole(adapter: AdapterFacts) -> list[str]:
    """Tensors that stand in place of the model's own, embeddings that were resized for one."""
    items = [item for group in adapter.tensors for name in expand(group) if (item := read(name)) is not None]
    return sorted(
        f"{item.module}.{item.parameter}"
        for item in items
        if item.role in ("whole", "tokens") and item.module.rpartition(".")[2] not in _CLASSIFIERS
    )
