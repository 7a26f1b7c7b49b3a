"""Every `auto` with the value chosen for it and the reason, ready for COMPILE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Choice(Generic[T]):
    """A value and why: `because` is "deploy.yaml:31", a rule's code, "search" or "default"; `reason` is for people."""

    value: T
    because: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Choices:
    """The configuration that is predicted, judged and compiled. Lengths in tokens, sizes in bytes."""

    weights: Choice[str]  # "none" | "checkpoint" | a key of cost.weights.formats.SCHEMES: what the artifact holds
    dtype: Choice[str]  # "bfloat16" | "float16" | "float32"
    adapter_mode: Choice[Literal["none", "merge", "serve"]]
    kv_cache_dtype: Choice[str]  # "auto" | "fp8"
    tensor_parallel_size: Choice[int]
    replicas: Choice[int]
    max_model_len: Choice[int]
    max_num_seqs: Choice[int]
    max_num_batched_tokens: Choice[int]
    gpu_memory_utilization: Choice[float]
    enforce_eager: Choice[bool]
    enable_prefix_caching: Choice[bool]
    cpu_kv_cache_bytes: Choice[int] | None = None  # CPU engine only: VLLM_CPU_KVCACHE_SPACE, whole GiB
    served_model_name: Choice[tuple[str, ...]] = Choice((), "default")
    ignore: tuple[str, ...] = ("lm_head",)  # modules that our quantizer leaves at 16 bit
    group_size: Choice[int] = Choice(128, "default")  # inputs that share a scale where 4-bit weights are made
    pipeline_parallel_size: Choice[int] = Choice(1, "default")
    data_parallel_size: Choice[int] = Choice(1, "default")
    expert_parallel: Choice[bool] = Choice(False, "default")
    cpu_offload_bytes: Choice[int] = Choice(0, "default")  # weights of each card that lie in host memory
    max_lora_rank: Choice[int] | None = None  # mode serve only
    max_loras: Choice[int] | None = None
    async_scheduling: Choice[bool] = Choice(True, "default")

    @property
    def needs_build(self) -> bool:
        """Whether an artifact must be made: a merge or a quantization."""
        return self.adapter_mode.value == "merge" or self.weights.value not in ("none", "checkpoint")
