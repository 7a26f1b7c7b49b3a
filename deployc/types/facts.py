"""Facts about model, adapters, GPUs and engine, as RESOLVE found them and `deploy.lock` freezes them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from deployc.types.architecture import Architecture
from deployc.types.calibration import NOT_CALIBRATED, Calibration
from deployc.types.config import Config, language, put, quantization
from deployc.types.lore import NO_LORE, Lore
from deployc.types.runner import RunnerRule
from deployc.types.scheme import weights_in

DTYPE_BYTES: Mapping[str, float] = {
    "F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2, "I16": 2, "U16": 2,
    "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1, "I8": 1, "U8": 1, "BOOL": 1, "F4": 0.5, "F6_E2M3": 0.75, "F6_E3M2": 0.75,
}  # fmt: skip
"""Bytes an element by safetensors dtype name (safetensors' `Dtype` enum)."""

SAFETENSORS_NAMES: Mapping[str, str] = {"bfloat16": "BF16", "float16": "F16", "float32": "F32"}
"""safetensors dtype name by torch's, of those that the weights of an unquantized checkpoint are in."""

SERVED_BYTES: Mapping[str, int] = {"bfloat16": 2, "float16": 2, "float32": 4}
"""Bytes an element by the name of a dtype that the engine serves in."""


_NO_WEIGHTS = ("adapter_model.bin", "training_args.bin", "optimizer.bin", "scheduler.bin")


def pickles(files: Iterable[str]) -> list[str]:
    """Weights of a model that are pickles, where nothing else is there: what the engine loads then
    (vllm/model_executor/model_loader/default_loader.py and weight_utils.py, filter_files_not_needed_for_inference)."""
    names = sorted(files)
    found = [name for name in names if name.endswith(".bin") and name not in _NO_WEIGHTS]
    return [] if any(name.endswith((".safetensors", ".gguf")) for name in names) else found


@dataclass(frozen=True, slots=True)
class TensorGroup:
    """Tensors that differ only in the numbers in their names: `pattern` has `{0-27}` where a number ran.

    `count` tensors of `shape` and `dtype` (safetensors name) each.
    """

    pattern: str
    dtype: str
    shape: tuple[int, ...]
    count: int = 1

    @property
    def elements(self) -> int:
        """Elements of all `count` tensors together."""
        return math.prod(self.shape) * self.count

    @property
    def bytes(self) -> int:
        """Bytes of all `count` tensors together."""
        return math.ceil(self.elements * DTYPE_BYTES[self.dtype])


MOST_CARDS = 1024
"""Of one deployment: no machine holds more, and every search over them stays within seconds."""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What is known of the model at its pinned commit, without having read its weights."""

    source: str  # as in deploy.yaml
    hub: Literal["huggingface", "modelscope", "folder"]
    revision: str | None  # commit; None for a folder
    config: Mapping[str, Any]  # config.json as the source has it
    architecture: Architecture
    tensors: tuple[TensorGroup, ...]
    weights_basis: Literal["header", "architecture"]  # safetensors headers, or shapes derived from config.json
    provenance: str  # "" or why the facts are not from the source itself, e.g. written by hand from the public config
    files: Mapping[str, str]  # path -> "sha256:…" (small files) or "size:…" or the hub's etag; what pins the content
    generation_config: Mapping[str, Any] = field(default_factory=dict)
    chat_template: bool = False
    gated: bool = False  # the hub gives it to none but those whom its owner let in
    assume: Mapping[str, Any] = field(default_factory=dict)  # of `--assume`: dotted key of config.json -> value

    @property
    def parameters(self) -> int:
        """Weights of the model, packed ones too (tied embeddings once where the checkpoint stores them once)."""
        return sum(self.weights_in(tensor) for tensor in self.tensors)

    @property
    def read_config(self) -> Config:
        """config.json as the facts were read from it: with what `assume` puts there."""
        config: Config = self.config
        for key, value in self.assume.items():
            _, config = put(config, key.split("."), value)
        return config

    @property
    def language_config(self) -> Config:
        """The language model's own part of it."""
        return language(self.read_config)

    @property
    def quantization(self) -> Config:
        """What it says of the checkpoint's quantization; empty = it is not quantized."""
        return quantization(self.read_config)

    def weights_in(self, tensor: TensorGroup) -> int:
        """How many of the model's weights a group holds; scales and the like are none."""
        return weights_in(tensor.pattern, tensor.dtype, tensor.elements, self.quantization)


@dataclass(frozen=True, slots=True)
class AdapterFacts:
    """What is known of one LoRA adapter: adapter_config.json and its safetensors header."""

    name: str
    source: str
    revision: str | None
    config: Mapping[str, Any]  # adapter_config.json
    rank: int  # the largest rank of any module
    base: str  # base_model_name_or_path
    target_modules: tuple[str, ...]
    tensors: tuple[TensorGroup, ...]
    files: Mapping[str, str]


FigureBasis = Literal["vendor", "measured", "quoted", "derived", "recalled", "user", "nvml", "host"]


@dataclass(frozen=True, slots=True)
class Spec:
    """One figure of a GPU profile: in bytes, bytes/s, operations/s …, with where it comes from."""

    value: float
    source: str
    basis: FigureBasis


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """One kind of card (or "cpu"): what its profile, NVML or the user's file says of it. None = not known."""

    name: str  # canonical profile name, "custom", or "cpu"
    memory: Spec  # bytes that CUDA shows (torch.cuda.mem_get_info total); for "cpu" the host memory to be used
    bandwidth: Spec | None  # bytes/s
    compute_capability: tuple[int, int] | None
    flops: Mapping[str, Spec]  # dense operations/s: "bf16" | "fp16" | "fp8" | "int8"; absent = no such unit, or unknown
    interconnect: str  # "nvlink" | "pcie" | "none" | "unknown"
    interconnect_bandwidth: Spec | None = None  # bytes/s, one direction
    vendor: str = "nvidia"
    used: int = 0  # bytes held by others now, where NVML was asked
    driver: str = ""  # of this machine, where NVML was asked


def opposite(name: str) -> str:
    """ "disable-x" of "enable-x" and the other way round; "" of any other name."""
    for prefix, other in (("enable-", "disable-"), ("disable-", "enable-")):
        if name.startswith(prefix):
            return other + name.removeprefix(prefix)
    return ""


@dataclass(frozen=True, slots=True)
class Flag:
    """One option of the engine's command line at one version."""

    name: str  # without leading dashes: "max-model-len"
    type: str  # "int" | "float" | "str" | "bool" | "json" | "list" | "size" ("16k", "1M" accepted)
    choices: tuple[str, ...] = ()
    default: str | None = None
    aliases: tuple[str, ...] = ()  # other spellings, e.g. "tp"; "no-enable-lora" where a boolean has its `--no-` twin
    deprecated: str = ""  # what the engine says of its going; "" = it stays

    def turned_off_by(self, alias: str) -> bool:
        """Whether one of the aliases is a switch's opposite: `no-x` of `x`, `disable-x` of `enable-x` (0.33 on)."""
        return self.type == "bool" and (
            alias.startswith("no-") or alias in {opposite(self.name), *map(opposite, self.aliases)}
        )


@dataclass(frozen=True, slots=True)
class Method:
    """One value of --quantization at one version."""

    least: tuple[int, int] | None = None  # compute capability that it asks for; None = the engine names none
    plugin: str = ""  # the package that it moved to; "" = it is in the engine itself
    dtypes: tuple[str, ...] = ()  # that it serves in, by torch's names; empty = its class names none
    deprecated: bool = False  # the engine says that it goes, or takes it only where that is allowed


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """One version of the engine: its flags and the few behaviours that plan and emit depend on."""

    name: str
    version: str
    flags: Mapping[str, Flag]
    gpu_memory_utilization: float  # default
    batch_defaults: tuple[Mapping[str, Any], ...]  # ordered rules, see facts/catalogue/batch.py
    model_runners: tuple[RunnerRule, ...]  # ordered; the last asks nothing
    graphs_in_budget: tuple[str, ...]  # the runners whose KV budget subtracts the CUDA graph estimate
    image: str  # default image with tag
    cuda: str  # of that image
    entrypoint: str  # "vllm serve" | "python -m …"
    source: str
    v2_architectures: tuple[str, ...] = ()  # those that a rule of model_runners calls `listed`
    block_size: int | None = None  # tokens of a KV block on CUDA
    cpu: Mapping[str, Any] = field(default_factory=dict)  # CPU backend: block_size, dtypes, kv_space_unit, …_unset
    rope_key: str = ""  # of rotary scaling in --hf-overrides: "rope_parameters" | "rope_scaling"
    compute_capabilities: tuple[str, ...] = ()  # that the image is built for, "8.9" …; empty = not known
    variables: tuple[str, ...] = ()  # of the environment, that the engine's own code reads
    methods: Mapping[str, Method] = field(default_factory=dict)  # values of --quantization
    lora_ranks: tuple[int, ...] = ()  # values of --max-lora-rank, rising
    wheel_cuda: str = ""  # CUDA of the wheel on the package index, "12.9"; "" = not known
    v1_needs: Mapping[str, Any] = field(default_factory=dict)  # facts/catalogue/before_v1.py; empty = V1 alone serves
    cuda_compat: str = ""  # when the image loads NVIDIA's library for older drivers: "always" | "asked" | "" = never

    def canonical(self, written: str) -> str:
        """`max_num_seqs`, `--max-num-seqs` and an alias of the catalogue are one flag: "max-num-seqs".

        What follows a dot is a key of the flag's map, which the engine takes as it is written.
        """
        flag, dot, key = written.lstrip("-").partition(".")
        name = flag.replace("_", "-")
        if name not in self.flags:
            name = next((known.name for known in self.flags.values() if name in known.aliases), name)
        return name + dot + key

    def positive(self, written: str) -> tuple[str, bool]:
        """The canonical name, and whether the spelling turns a switch off: `no-x` does, with or without an own twin."""
        name = written.lstrip("-").replace("_", "-")
        found = self.canonical(written)
        if found in self.flags:
            return found, found != name and self.flags[found].turned_off_by(name)
        switch = self.flags.get(name.removeprefix("no-"))
        return (switch.name, True) if switch is not None and switch.type == "bool" else (found, False)

    def model_runner(self, model: Architecture, *, quantized: bool = False, speculative: str = "") -> str:
        """ "V1" | "V2": the default for such a model; `quantized` = its config.json has a quantization_config."""
        listed = model.name in self.v2_architectures
        holding = (
            rule.runner
            for rule in self.model_runners
            if rule.holds(model, listed=listed, quantized=quantized, speculative=speculative)
        )
        return next(holding)

    def counts_graphs(self, model: Architecture, *, quantized: bool = False, speculative: str = "") -> bool:
        """Whether the KV budget of such a model subtracts the CUDA graph estimate: it depends on its default runner."""
        return self.model_runner(model, quantized=quantized, speculative=speculative) in self.graphs_in_budget


@dataclass(frozen=True, slots=True)
class Facts:
    """All that RESOLVE hands on. `devices` has one entry a card of the deployment (`hardware.count` of them)."""

    model: ModelFacts
    adapters: tuple[AdapterFacts, ...]
    devices: tuple[GpuFacts, ...]
    engine: EngineFacts
    locked: bool  # all of it came from deploy.lock or local folders
    calibration: Calibration = NOT_CALIBRATED  # the cost model's constants: tool data, in no lockfile
    known_cards: tuple[GpuFacts, ...] = ()  # every card with a profile, by memory: tool data too
    lore: Lore = NO_LORE  # what is known beyond this version of the engine: tool data too
    texts: Mapping[str, str] = field(default_factory=dict)  # text of the user's as deploy.yaml names it -> "sha256:…"
    base: ModelFacts | None = None  # where merged adapters give the model other shapes: the model before, `model` after
    mended: tuple[str, ...] = ()  # what of its shape they change, in words

    @property
    def unmerged(self) -> ModelFacts:
        """The model as its source has it: what adapters were trained on."""
        return self.base or self.model

    @property
    def smallest(self) -> GpuFacts:
        """The card with least memory: under tensor parallelism it rules."""
        return min(self.devices, key=lambda d: d.memory.value)
