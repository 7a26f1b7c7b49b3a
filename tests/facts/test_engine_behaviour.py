"""What each version does by default, read in its sources by hand; places are of those sources."""

from __future__ import annotations

from dataclasses import replace

import pytest
from handmade import architecture, facts, gpu

from deployc.cost.batch import batch_defaults
from deployc.facts.catalogue.history import release
from deployc.facts.engine import load, versions
from deployc.types.architecture import Architecture, LayerCache
from deployc.types.facts import EngineFacts

GIB = 2**30
ENGINES = {version: load(version) for version in versions()}


def minor(version: str) -> int:
    return int(version.split(".")[1])


DENSE = architecture()
EXPERTS = replace(DENSE, experts=128, experts_per_token=8)
FULL, STATE = LayerCache("full", (0, 2), 4, 128, 128), LayerCache("state", (1, 3))
HYBRID, STATES = (FULL, STATE), (STATE,)
MODELS = {
    "qwen2": DENSE,
    "qwen3": replace(DENSE, name="Qwen3ForCausalLM"),
    "llama": replace(DENSE, name="LlamaForCausalLM"),
    "vision": replace(DENSE, name="Qwen2_5_VLForConditionalGeneration"),
    "qwen3_moe": replace(EXPERTS, name="Qwen3MoeForCausalLM"),
    "qwen2_moe": replace(EXPERTS, name="Qwen2MoeForCausalLM"),
    "deepseek_v3": replace(EXPERTS, name="DeepseekV3ForCausalLM"),
    "deepseek_v4": replace(EXPERTS, name="DeepseekV4ForCausalLM"),
    "falcon_h1": replace(DENSE, name="FalconH1ForCausalLM", caches=HYBRID),
    "qwen3_next": replace(EXPERTS, name="Qwen3NextForCausalLM", caches=HYBRID),
    "kimi_k3": replace(EXPERTS, name="KimiK3ForConditionalGeneration", caches=HYBRID),
    "mamba": replace(DENSE, name="MambaForCausalLM", caches=STATES),
}
DENSE_ATTENTION = {"qwen2", "qwen3", "llama", "vision"}
ON_V2 = {
    # No second runner up to 0.11; then VLLM_USE_V2_MODEL_RUNNER is "0" by default: vllm/envs.py:1550 (0.12.0) … :1712
    # (0.21.0).
    **{n: set[str]() for n in range(8, 22)},
    # One list, without experts, without quantization: vllm/config/vllm.py:69 and :527-532.
    22: {"qwen3"},
    # Llama and Mistral join it: vllm/config/vllm.py:69-75.
    23: {"qwen3", "llama"},
    # The list alone decides, Qwen2Moe is on it: vllm/config/vllm.py:68-77 and :559-561.
    24: {"qwen3", "llama", "qwen2_moe"},
    # All but hybrid, attention-free and expert models; the list now names expert models: vllm/config/vllm.py:557-574.
    25: DENSE_ATTENTION | {"qwen2_moe"},
    26: DENSE_ATTENTION | {"qwen2_moe"},
    # A hybrid model on the list stays on V2: vllm/config/vllm.py:651-654 (0.27.1); KimiK3 :75.
    27: DENSE_ATTENTION | {"qwen2_moe", "kimi_k3"},
    # DeepSeek V4 joins the list: vllm/config/vllm.py:72.
    28: DENSE_ATTENTION | {"qwen2_moe", "kimi_k3", "deepseek_v4"},
    # No model is excepted on NVIDIA: vllm/config/vllm.py:645 (0.29.0) … :731 (0.33.0).
    **{n: set(MODELS) for n in range(29, 34)},
}


@pytest.mark.parametrize("version", versions())
def test_the_model_runner_of_every_kind_of_model(version: str) -> None:
    found = {name for name, model in MODELS.items() if ENGINES[version].model_runner(model) == "V2"}
    assert found == ON_V2[minor(version)]


@pytest.mark.parametrize("version", versions())
def test_a_quantized_checkpoint_changes_the_runner_in_two_versions(version: str) -> None:
    """`not model_config.is_quantized`: vllm/config/vllm.py:532 (0.22.1), :558 (0.23.0); gone in 0.24.0."""
    runners = {ENGINES[version].model_runner(MODELS["qwen3"], quantized=q) for q in (False, True)}
    assert (runners == {"V1", "V2"}) == (minor(version) in (22, 23))


@pytest.mark.parametrize(
    ("method", "first"),
    [
        ("eagle3", 22),  # vllm/config/vllm.py:2002 (0.22.1)
        ("dflash", 24),  # :2031 (0.24.0)
        ("draft_model", 31),  # in the list of what V2 lacks at :2844 of 0.30.0, not at :3075 of 0.31.0
        ("ngram", 32),  # :3076 of 0.31.0, not :2928 of 0.32.0
        ("medusa", 33),  # :2930 of 0.32.0, not :3067 of 0.33.0
        ("suffix", None),  # still at :3067 of 0.33.0
    ],
)
def test_a_speculative_method_that_v2_lacks_runs_on_v1(method: str, first: int | None) -> None:
    served = [v for v in versions() if ENGINES[v].model_runner(MODELS["qwen3"], speculative=method) == "V2"]
    assert served == [v for v in versions() if first is not None and minor(v) >= first]


def test_dspark_alone_forces_v2() -> None:
    """vllm/config/vllm.py:530 (0.25.1): before the default of the model is asked."""
    assert ENGINES["0.25.1"].model_runner(MODELS["qwen3_moe"], speculative="dspark") == "V2"
    assert ENGINES["0.24.0"].model_runner(MODELS["qwen3"], speculative="dspark") == "V1"


@pytest.mark.parametrize("version", versions())
def test_whose_graphs_the_budget_pays(version: str) -> None:
    """V1 from 0.20, V2 from 0.29.

    No estimate before 0.18 (gpu_worker.py:301 of 0.16.0); VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS is "0" in 0.18.1
    and 0.19.0 (envs.py:1636, :1655) and "1" from 0.20.2 (:1737). V2's profile_cudagraph_memory is `return 0` up to
    gpu/model_runner.py:843 of 0.28.0 and an estimate from :896 of 0.29.0.
    """
    engine = ENGINES[version]
    first = {"V1": 20, "V2": 29}
    assert engine.graphs_in_budget == tuple(runner for runner, since in first.items() if minor(version) >= since)
    for name, model in MODELS.items():
        v2 = name in ON_V2[minor(version)]
        assert engine.counts_graphs(model) == (minor(version) >= first["V2" if v2 else "V1"]), name


MEASURED = [
    # H100, logs of 0.19.0 (llm-d-planner, pull request 205), utilization 0.95 of 79.19 GiB
    ("0.19.0", "llama", 75.23, 14.99, 1.89, 0.25, 0.84, 58.11),
    ("0.19.0", "qwen3_moe", 75.23, 56.88, 2.68, 0.27, 1.24, 15.41),
    # H200, logs of 0.25.1; V2 logs no estimate of its graphs, 0.41 GiB were captured
    ("0.25.1", "llama", 128.62, 15.0, 1.01, 0.22, 0.41, 112.38),
    ("0.25.1", "qwen3_moe", 128.62, 56.88, 0.6, 0.24, 0.3, 70.6),
]
"""Version, model, and in GiB: requested, weights, activation peak, non-torch, CUDA graphs, available KV."""


@pytest.mark.parametrize(("version", "name", "requested", "weights", "peak", "outside", "graphs", "kv"), MEASURED)
def test_measured_budgets_close_with_the_graphs_or_without(
    version: str, name: str, requested: float, weights: float, peak: float, outside: float, graphs: float, kv: float
) -> None:
    left = requested - weights - peak - outside
    counted = ENGINES[version].counts_graphs(MODELS[name])
    assert left - (graphs if counted else 0) == pytest.approx(kv, abs=0.02)


def batch(engine: EngineFacts, memory: int, name: str) -> tuple[int, int]:
    """Of a card, by the first rule that holds."""
    for rule in engine.batch_defaults:
        named = any(part in name for part in rule.get("gpu", [""]))
        excepted = any(part in name for part in rule.get("not_gpu", ()))
        if "device" not in rule and memory * GIB >= rule.get("min_memory", 0) and named and not excepted:
            return rule["tokens"], rule["seqs"]
    raise AssertionError("no rule")


@pytest.mark.parametrize("version", [v for v in versions() if release(v) >= (0, 9)])
def test_batch_defaults_of_the_server(version: str) -> None:
    """EngineArgs.get_batch_defaults, vllm/engine/arg_utils.py:1848 (0.16.0) … :2940 (0.33.0): UsageContext's server.

    Up to 0.11.0 it is _set_default_args_v1 and _set_default_args, :1460 (0.9.0) … :1540 (0.11.0). Cards of 160 GiB have
    their own step from :2582 of 0.28.0 on; GB10 is small by name from 0.33.0 on (:2986).
    """
    engine = ENGINES[version]
    assert batch(engine, 178, "b200") == ((16384, 1024) if minor(version) >= 28 else (8192, 1024))
    assert batch(engine, 139, "h200") == batch(engine, 79, "h100") == (8192, 1024)
    assert batch(engine, 79, "a100") == batch(engine, 23, "rtx 4090") == batch(engine, 69, "odd") == (2048, 256)
    assert batch(engine, 119, "gb10") == ((2048, 256) if minor(version) >= 33 else (8192, 1024))


@pytest.mark.parametrize(
    ("version", "small", "a100"),
    [
        (
            "0.8.0",
            (2048, 1024),
            (2048, 1024),
        ),  # H100 and H200 by name, as many sequences on all: arg_utils.py:1693, :1715
        ("0.8.3", (2048, 1024), (2048, 1024)),
        ("0.8.4", (2048, 256), (2048, 256)),  # vllm/engine/arg_utils.py:1669
        ("0.8.5", (2048, 256), (8192, 1024)),  # by memory, the A100 too: vllm/engine/arg_utils.py:1596
        ("0.9.0", (2048, 256), (2048, 256)),  # without the A100: vllm/engine/arg_utils.py:1495
    ],
)
def test_batch_defaults_of_the_first_versions(version: str, small: tuple[int, int], a100: tuple[int, int]) -> None:
    engine = ENGINES[version]
    assert batch(engine, 139, "h200") == batch(engine, 79, "h100") == (8192, 1024)
    assert (batch(engine, 23, "rtx 4090"), batch(engine, 79, "a100")) == (small, a100)


@pytest.mark.parametrize(
    ("version", "rule"),
    [
        # V1 does not run there yet: _DEFAULT_MAX_NUM_BATCHED_TOKENS of vllm/config.py:61, max_num_seqs of
        # _set_default_args_v0 in vllm/engine/arg_utils.py:1659 (0.8.0)
        ("0.8.0", {"device": "cpu", "tokens": 2048, "seqs": 256}),
        ("0.9.0", {"device": "cpu", "tokens": 2048, "seqs": 256}),
        # V1, to which the CPU is a card of the host's memory: vllm/engine/arg_utils.py:1554, vllm/platforms/cpu.py:262
        ("0.9.1", {"device": "cpu", "min_memory": 70 * GIB, "tokens": 8192, "seqs": 1024}),
        ("0.9.2", {"device": "cpu", "tokens": 2048, "seqs": 32}),  # vllm/engine/arg_utils.py:1666
        ("0.10.0", {"device": "cpu", "tokens": 2048, "seqs": 128, "times_world_size": True}),
        ("0.33.0", {"device": "cpu", "tokens": 2048, "seqs": 128, "times_world_size": True}),
    ],
)
def test_batch_defaults_on_the_cpu(version: str, rule: dict[str, object]) -> None:
    assert ENGINES[version].batch_defaults[0] == rule


@pytest.mark.parametrize(
    ("version", "card", "memory", "defaults"),
    [
        ("0.8.0", "h100-sxm", 79.19, (8192, 1024)),
        ("0.8.0", "a100-80", 79.25, (2048, 1024)),
        ("0.8.5", "a100-80", 79.25, (8192, 1024)),
        ("0.9.0", "a100-80", 79.25, (2048, 256)),
        ("0.9.1", "cpu", 100, (8192, 1024)),
        ("0.9.1", "cpu", 30, (2048, 256)),
        ("0.33.0", "gb10", 119, (2048, 256)),
    ],
)
def test_the_cost_model_takes_the_rule_of_the_card(
    version: str, card: str, memory: float, defaults: tuple[int, int]
) -> None:
    assert batch_defaults(facts(engine=ENGINES[version], card=gpu(card, memory))) == defaults


CUDA = {"0.8.0": "12.4", "0.9.0": "12.8", "0.11.1": "12.9", "0.20.0": "13.0"}
UNSET = {"0.8.0": "four_gib", "0.13.0": "half_of_node", "0.20.0": "gpu_memory_utilization"}
ENTRY = {"0.8.0": "python3 -m vllm.entrypoints.openai.api_server", "0.11.1": "vllm serve"}


def since(table: dict[str, str], version: str) -> str:
    """The value of the last version in the table that is not newer."""
    return [value for first, value in table.items() if release(first) <= release(version)][-1]


@pytest.mark.parametrize("version", versions())
def test_what_changed_once(version: str) -> None:
    """gpu_memory_utilization: vllm/config/cache.py:49 (0.16.0), :66 (0.20.2). The image's CUDA: docker/Dockerfile:25.

    V100 (7.0) is in docker/Dockerfile:184 of 0.16.0 and not in :191 of 0.20.2; B200 (10.0) comes in :80 of 0.9.0, RTX
    50 (12.0) in :165 of 0.9.2. The CPU's pool: 4 GiB in vllm/platforms/cpu.py:151 of 0.12.0, half of a NUMA node's
    memory in :157 of 0.17.1, utilization of it in vllm/v1/worker/cpu_worker.py:184 of 0.20.2. Rotary scaling: renamed
    in vllm/transformers_utils/config.py:301 of 0.12.0.
    """
    engine, new, at = ENGINES[version], minor(version) >= 20, release(version)
    assert engine.gpu_memory_utilization == (0.92 if new else 0.9)
    assert engine.cuda == since(CUDA, version)
    assert engine.entrypoint == since(ENTRY, version)
    assert engine.cpu["kv_space_unset"] == since(UNSET, version)
    assert engine.cpu["block_size"] == (128 if at >= (0, 9) else 16)  # IPEX is in requirements/cpu.txt:26 of 0.9.0
    assert engine.rope_key == ("rope_parameters" if at >= (0, 12) else "rope_scaling")
    capabilities = engine.compute_capabilities
    assert ("7.0" in capabilities) != new
    assert ("10.0" in capabilities, "12.0" in capabilities) == (at >= (0, 9), at >= (0, 9, 2))
    assert ("shutdown-timeout" in engine.flags) == (minor(version) >= 18)  # vllm/engine/arg_utils.py:610 of 0.18.1


@pytest.mark.parametrize("version", versions())
def test_what_is_the_same_in_all(version: str) -> None:
    """Block: vllm/platforms/cuda.py:145 (0.8.0), :164 (0.16.0), vllm/config/cache.py:34 (0.18.1), :185 (0.33.0)."""
    engine = ENGINES[version]
    assert engine.block_size == 16
    assert {"7.5", "8.0", "8.9", "9.0"} <= set(engine.compute_capabilities)
    assert engine.cpu["dtypes"] == ["bfloat16", "float16", "float32"]


def test_a_model_of_several_attention_kinds_is_no_hybrid_of_vllm() -> None:
    """`is_hybrid` (vllm/config/model.py:1840 of 0.28.0) asks for state layers; sliding windows are none."""
    sliding: Architecture = replace(DENSE, caches=(FULL, LayerCache("sliding", (1, 3), 4, 128, 128, window=1024)))
    assert ENGINES["0.25.1"].model_runner(sliding) == "V2"
