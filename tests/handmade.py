"""Values as the stages would make them, written by hand: for tests of what comes after (COMPILE, PLAN, SHOW)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq

from deployc.diagnostics import Span
from deployc.spec.deploy import Deploy, Path, bind
from deployc.types.architecture import Architecture, LayerCache
from deployc.types.choices import Choice, Choices
from deployc.types.facts import AdapterFacts, EngineFacts, Facts, Flag, GpuFacts, ModelFacts, Spec, TensorGroup
from deployc.types.figure import Basis, Figure, banded, exact
from deployc.types.prediction import Memory, Prediction, SingleStream, Speed
from deployc.types.runner import RunnerRule

GIB = 2**30

QWEN_ON_4090 = """\
version: 1
name: domain-qa
model:
  source: Qwen/Qwen2.5-7B-Instruct
adapters:
  - name: domain-qa
    source: ./adapters/domain-qa
hardware:
  gpu: rtx-4090
workload:
  input_tokens: 1500
  output_tokens: 256
  concurrency: 32
sla:
  ttft_p95: 800ms
  tpot_p95: 40ms
engine:
  name: vllm
  version: 0.32.0
target:
  kind: process
  api_key: {env: DEPLOYC_API_KEY}
"""


def deploy_of(text: str, file: str = "deploy.yaml") -> Deploy:
    """A Deploy with the place of every key, from YAML text."""
    yaml = YAML()
    tree = yaml.load(text)
    lines = text.splitlines()
    spans: dict[Path, Span] = {(): Span(file, 1, 1, 2, lines[0])}
    _places(tree, (), file, lines, spans)
    return bind(YAML(typ="safe", pure=True).load(text), spans)


def _places(node: Any, path: Path, file: str, lines: list[str], spans: dict[Path, Span]) -> None:
    if not isinstance(node, CommentedMap | CommentedSeq):
        return
    for key, value in node.items() if isinstance(node, CommentedMap) else enumerate(node):
        line, column = node.lc.value(key) if isinstance(node, CommentedMap) else node.lc.item(key)
        excerpt = lines[line]
        spans[(*path, key)] = Span(file, line + 1, column + 1, max(column + 2, len(excerpt) + 1), excerpt)
        _places(value, (*path, key), file, lines, spans)


def flag_catalogue() -> dict[str, Flag]:
    """The few flags that the tests set, as the catalogue of 0.32.0 has them."""
    flags = [
        Flag("tensor-parallel-size", "int", aliases=("tp",)),
        Flag("max-num-seqs", "int"),
        Flag("max-model-len", "size"),
        Flag("max-num-batched-tokens", "size"),
        Flag("gpu-memory-utilization", "float"),
        Flag("enable-prefix-caching", "bool", aliases=("no-enable-prefix-caching",)),
        Flag("enforce-eager", "bool", aliases=("no-enforce-eager",)),
        Flag("allowed-origins", "json"),
        Flag("middleware", "list"),
        Flag("headless", "bool"),
        Flag("enable-chunked-prefill", "bool", aliases=("no-enable-chunked-prefill",)),
        Flag("shutdown-timeout", "int"),
        Flag("api-server-count", "int"),
        Flag("block-size", "int"),
        Flag("seed", "int"),
        Flag("kv-cache-dtype", "str", ("auto", "bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2"), "auto"),
    ]
    return {flag.name: flag for flag in flags}


def engine_facts(version: str = "0.32.0", entrypoint: str = "vllm serve") -> EngineFacts:
    """vLLM at a version."""
    return EngineFacts(
        name="vllm",
        version=version,
        flags=flag_catalogue(),
        gpu_memory_utilization=0.92,
        batch_defaults=({"device": "cpu", "tokens": 2048, "seqs": 128}, {"tokens": 2048, "seqs": 256}),
        model_runners=(RunnerRule("V2"),),
        graphs_in_budget=("V2",),
        image=f"vllm/vllm-openai:v{version}",
        cuda="13.0",
        entrypoint=entrypoint,
        source="handmade",
        rope_key="rope_parameters",
    )


def gpu(name: str = "rtx-4090", memory: float = 23.5) -> GpuFacts:
    """One card; `memory` in GiB."""
    return GpuFacts(
        name=name,
        memory=Spec(memory * GIB, "handmade", "quoted"),
        bandwidth=Spec(1008e9, "handmade", "vendor"),
        compute_capability=(8, 9),
        flops={"bf16": Spec(165e12, "handmade", "vendor")},
        interconnect="pcie",
    )


def architecture() -> Architecture:
    """Qwen2.5-7B, by its public config.json."""
    return Architecture(
        name="Qwen2ForCausalLM",
        model_type="qwen2",
        layers=28,
        hidden_size=3584,
        intermediate_size=18944,
        attention="gqa",
        heads=28,
        kv_heads=4,
        head_dim=128,
        vocab_size=152064,
        max_position_embeddings=32768,
        tie_word_embeddings=False,
        dtype="bfloat16",
        caches=(LayerCache("full", tuple(range(28)), 4, 128, 128),),
        rope={"rope_theta": 1000000.0},
    )


def facts(
    *,
    hub: Any = "huggingface",
    source: str = "Qwen/Qwen2.5-7B-Instruct",
    adapters: int = 1,
    cards: int = 1,
    card: GpuFacts | None = None,
    engine: EngineFacts | None = None,
    adapter_revision: str | None = None,
) -> Facts:
    """Facts of Qwen2.5-7B, with LoRA adapters, on some cards."""
    model = ModelFacts(
        source=source,
        hub=hub,
        revision=None if hub == "folder" else "a09a35458c702b33eeacc393d103063234e8bc28",
        config={"rope_theta": 1000000.0},
        architecture=architecture(),
        tensors=(TensorGroup("all.weights", "BF16", (7615616512,)),),
        weights_basis="header",
        provenance="",
        files={"config.json": "sha256:" + "1" * 64, "model.safetensors": "size:15231233024"},
    )
    made = tuple(
        AdapterFacts(
            name="domain-qa" if index == 0 else f"domain-qa-{index}",
            source="./adapters/domain-qa" if index == 0 else f"./adapters/domain-qa-{index}",
            revision=adapter_revision,
            config={"r": 16},
            rank=16,
            base=source,
            target_modules=("q_proj",),
            tensors=(),
            files={"adapter_config.json": "sha256:" + "2" * 64},
        )
        for index in range(adapters)
    )
    return Facts(model, made, (card or gpu(),) * cards, engine or engine_facts(), locked=True)


def choices(**changed: Any) -> Choices:
    """Choices for Qwen2.5-7B with one adapter merged on one RTX 4090."""
    usual = Choices(
        weights=Choice("none", "default", "16-bit weights as they are"),
        dtype=Choice("bfloat16", "default", "the checkpoint's own"),
        adapter_mode=Choice("merge", "default", "one adapter: merged, so that no request pays for it"),
        kv_cache_dtype=Choice("auto", "default", "as the weights"),
        tensor_parallel_size=Choice(1, "default", "the model fits on one card"),
        replicas=Choice(1, "default", "one card"),
        max_model_len=Choice(32768, "default", "the model's limit; one such request fits"),
        max_num_seqs=Choice(32, "deploy.yaml:13", "the workload's concurrency"),
        max_num_batched_tokens=Choice(2048, "default", "the engine's own for this card"),
        gpu_memory_utilization=Choice(0.92, "default", "the engine's own"),
        enforce_eager=Choice(False, "default", "CUDA graphs are faster"),
        enable_prefix_caching=Choice(True, "default", "free where prompts share nothing"),
    )
    return replace(usual, **changed)


def cpu_choices() -> Choices:
    """Choices for the CPU engine: KV pool of 4 GiB, eager."""
    return choices(
        cpu_kv_cache_bytes=Choice(4 * GIB, "default", "holds the workload"),
        enforce_eager=Choice(True, "default", "compiling costs more than it gains here"),
        weights=Choice("int8", "deploy.yaml:9", "quantization.weights"),
    )


def figure(value: float, unit: str, basis: Basis = "modelled", band: float = 0.2) -> Figure:
    """A figure with an even band."""
    return exact(value, unit) if basis == "exact" else banded(value, unit, basis, band, band)


def memory(**changed: Figure) -> Memory:
    """The bill of Qwen2.5-7B on an RTX 4090, in bytes."""
    usual = Memory(
        total=exact(23.5 * GIB, "B"),
        budget=exact(21.62 * GIB, "B"),
        weights=exact(14.19 * GIB, "B"),
        activations=figure(1.04 * GIB, "B", "transferred"),
        cuda_graphs=figure(0.5 * GIB, "B", "transferred", 0.4),
        non_torch=figure(0.25 * GIB, "B", "transferred"),
        adapters=exact(0, "B"),
        kv_cache=figure(5.64 * GIB, "B", "transferred", 0.1),
    )
    return replace(usual, **changed)


def prediction(**changed: Any) -> Prediction:
    """What would be predicted for `QWEN_ON_4090`."""
    usual = Prediction(
        memory=memory(),
        kv_cache_tokens=figure(105600, "tokens", "transferred", 0.1),
        usable_kv_cache_tokens=figure(105584, "tokens", "transferred", 0.1),
        max_concurrency=figure(3.2, "requests", "transferred", 0.1),
        kv_bytes_per_token=exact(57344, "B"),
        speed=Speed(
            ttft_p50=figure(0.4, "s"),
            ttft_p95=figure(0.9, "s"),
            tpot_p50=figure(0.022, "s"),
            tpot_p95=figure(0.028, "s"),
            e2e_p95=figure(8.0, "s"),
            requests_per_second=figure(4.9, "1/s"),
            tokens_per_second=figure(1254, "1/s"),
        ),
        single_stream=SingleStream(figure(58, "1/s"), exact(66, "1/s"), "memory-bandwidth"),
        capacity=figure(5.6, "1/s"),
        bound_by="memory-bandwidth",
        startup_seconds=figure(60, "s", "modelled", 0.5),
    )
    return replace(usual, **changed)


def edited(text: str, changes: Mapping[str, str]) -> str:
    """The text with each key replaced by its value; a key that is not there fails the test."""
    for old, new in changes.items():
        assert old in text, old
        text = text.replace(old, new)
    return text
