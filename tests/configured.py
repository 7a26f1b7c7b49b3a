"""A configuration in one call: real shapes from config.json, real constants, named cards; decided and predicted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from handmade import deploy_of, engine_facts

from deployc.choose import decide
from deployc.facts.calibration import calibration
from deployc.facts.lore import lore
from deployc.facts.model import from_config
from deployc.rules import judge
from deployc.rules.case import Case
from deployc.types.choices import Choice, Choices
from deployc.types.facts import Facts, GpuFacts, Spec

GIB = 2**30

QWEN_7B: dict[str, Any] = {
    "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 3584, "num_hidden_layers": 28,
    "num_attention_heads": 28, "num_key_value_heads": 4, "intermediate_size": 18944, "vocab_size": 152064,
    "max_position_embeddings": 32768, "rope_theta": 1000000.0, "tie_word_embeddings": False, "rms_norm_eps": 1e-6,
    "torch_dtype": "bfloat16", "hidden_act": "silu", "use_sliding_window": False,
}  # fmt: skip
QWEN_05B = QWEN_7B | {
    "hidden_size": 896, "num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2,
    "intermediate_size": 4864, "vocab_size": 151936, "tie_word_embeddings": True,
}  # fmt: skip
SMOLLM2: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 576, "num_hidden_layers": 30,
    "num_attention_heads": 9, "num_key_value_heads": 3, "intermediate_size": 1536, "vocab_size": 49152,
    "max_position_embeddings": 8192, "rope_theta": 100000, "tie_word_embeddings": True, "torch_dtype": "bfloat16",
    "hidden_act": "silu", "rms_norm_eps": 1e-5,
}  # fmt: skip


def spec(value: float) -> Spec:
    """A figure of a test's own card."""
    return Spec(value, "a test's card", "user")


def card(
    name: str = "rtx-4090",
    memory: float = 23.5 * GIB,
    bandwidth: float = 1.008e12,
    capability: tuple[int, int] = (8, 9),
    flops: float = 165e12,
    interconnect: str = "pcie",
    used: int = 0,
) -> GpuFacts:
    """One card; the default is near an RTX 4090."""
    rates = {"bf16": spec(flops), "fp16": spec(flops), "int8": spec(2 * flops)}
    return GpuFacts(name, spec(memory), spec(bandwidth), capability, rates, interconnect, used=used)


H200 = card("h200-sxm", 139.8 * GIB, 4.8e12, (9, 0), 989e12, "nvlink")
A100 = card("a100-80", 79.15 * GIB, 2.039e12, (8, 0), 312e12, "nvlink")
HOST = GpuFacts("cpu", spec(8 * GIB), None, None, {}, "none")


def facts_of(
    config: Mapping[str, Any] = QWEN_7B, cards: tuple[GpuFacts, ...] = (card(),), version: str = "0.32.0",
    tokens: int = 2048, seqs: int = 256, graphs_in_budget: bool = False,
) -> Facts:  # fmt: skip
    """Facts of a model that exists as a config.json only, on these cards."""
    model = from_config(dict(config), source="org/model", hub="huggingface", provenance="", chat_template=True)
    engine = replace(
        engine_facts(version),
        batch_defaults=({"device": "cpu", "tokens": 2048, "seqs": 128}, {"tokens": tokens, "seqs": seqs}),
        graphs_in_budget=("V2",) if graphs_in_budget else (),
    )
    return Facts(model, (), cards, engine, locked=True, calibration=calibration(version), lore=lore(version))


def yaml_of(**sections: str) -> str:
    """A deploy.yaml; each section as flow YAML, the rest as in the default."""
    parts = {
        "version": "1",
        "name": "test",
        "model": "{source: org/model}",
        "hardware": "{gpu: rtx-4090}",
        "workload": "{input_tokens: 1500, output_tokens: 256, concurrency: 8, max_context: 8192}",
        "engine": "{version: 0.32.0}",
        **sections,
    }
    return "".join(f"{key}: {value}\n" for key, value in parts.items())


def case_of(facts: Facts | None = None, **sections: str) -> Case:
    """Decided and predicted."""
    deploy, known = deploy_of(yaml_of(**sections)), facts or facts_of()
    choices, prediction, _ = decide(deploy, known)
    assert choices is not None
    assert prediction is not None
    return Case(deploy, known, choices, prediction)


def codes(facts: Facts | None = None, **sections: str) -> dict[str, str]:
    """Code -> severity of everything the rules say."""
    case = case_of(facts, **sections)
    return {d.code: str(d.severity) for d in judge(case.deploy, case.facts, case.choices, case.prediction)}


def choices_of(**changes: Any) -> Choices:
    """A configuration by hand: one card, 16 bit, nothing merged, 8,192 tokens; `changes` are plain values by field."""
    values: dict[str, Any] = {
        "weights": "none", "dtype": "bfloat16", "adapter_mode": "none", "kv_cache_dtype": "auto",
        "tensor_parallel_size": 1, "replicas": 1, "max_model_len": 8192, "max_num_seqs": 128,
        "max_num_batched_tokens": 2048, "gpu_memory_utilization": 0.9, "enforce_eager": False,
        "enable_prefix_caching": True,
    } | changes  # fmt: skip
    plain = {name: values.pop(name) for name in ("ignore",) if name in values}
    chosen: dict[str, Any] = {name: Choice(value, "search") for name, value in values.items()}
    return Choices(**plain, **chosen)
