"""deploy.yaml as pydantic models: what the model, adapter, hardware and workload sections may say."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import CoreSchema, core_schema

from deployc import units


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value with a unit: parsed by one of `units`, which raises ValueError; a number or text in the JSON Schema.

    A plain function in the schema itself: pydantic's BeforeValidator inspects the function's signature at each field.
    """

    parse: Callable[[Any], float]
    example: str

    def __get_pydantic_core_schema__(self, _source: Any, _handler: Any) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.parse)

    def __get_pydantic_json_schema__(self, _schema: CoreSchema, _handler: Any) -> dict[str, Any]:
        return {"anyOf": [{"type": "number"}, {"type": "string"}], "examples": [self.example]}


Bytes = Annotated[int, Quantity(units.parse_bytes, "24GiB")]
Seconds = Annotated[float, Quantity(units.parse_seconds, "800ms")]
Fraction = Annotated[float, Quantity(units.parse_fraction, "3%")]
Rate = Annotated[float, Quantity(units.parse_rate, "8/s")]
Bandwidth = Annotated[float, Quantity(units.parse_bandwidth, "1008GB/s")]
Flops = Annotated[float, Quantity(units.parse_flops, "165TFLOPS")]
LARGEST = 2**31 - 1
Positive = Annotated[int, Field(ge=1, le=LARGEST)]


class Section(BaseModel):
    """Unknown keys are errors; values are taken as written, never coerced between types.

    Validators are built at the first use, once, as part of the whole Deploy: building one a section costs 80 ms.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


SILENT: Any = Field(default_factory=dict, validate_default=True)
"""Default of a section that the file does not mention: the section of an empty map."""


class Context(Section):
    """Longer context than the model's own positions, by scaling its rotary embedding."""

    rope: Literal["yarn"]
    factor: Annotated[float, Field(gt=1)]


class Model(Section):
    source: str
    hub: Literal["huggingface", "modelscope"] = "huggingface"
    endpoint: str | None = None
    revision: str | None = None
    dtype: Literal["auto", "bfloat16", "float16"] = "auto"
    trust_remote_code: bool = False
    context: Context | None = None
    overrides: dict[str, Any] = Field(default_factory=dict)


class Adapter(Section):
    name: str
    source: str
    revision: str | None = None
    mode: Literal["merge", "serve"] | None = None
    weight: float = 1.0


class Quantization(Section):
    weights: Literal[
        "none", "auto", "fp8", "int8", "int8-weight-only", "int4-gptq", "int4-awq", "int4-rtn", "checkpoint"
    ] = "none"
    group_size: Literal["auto", 32, 64, 128] = "auto"
    kv_cache: Literal["auto", "fp8"] = "auto"
    ignore: list[str] = Field(default_factory=lambda: ["lm_head"])
    calibration: dict[str, Any] | None = None
    quality: dict[str, Any] | None = None


class GpuFlops(Section):
    bf16: Flops | None = None
    fp8: Flops | None = None
    int8: Flops | None = None


class CustomGpu(Section):
    """A card without a profile: memory (what CUDA shows) and bandwidth suffice, the rest narrows the band."""

    memory: Bytes
    bandwidth: Bandwidth
    compute_capability: str | float | None = None
    flops: GpuFlops | None = None
    interconnect: Literal["nvlink", "pcie"] | None = None


class Hardware(Section):
    gpu: str | CustomGpu | list[str | CustomGpu]
    count: Positive = 1
    devices: list[int | str] | None = None
    nodes: Positive = 1
    interconnect: Literal["auto", "nvlink", "pcie"] = "auto"
    driver: str | None = None
    reserved_memory: Bytes = 0
    cpus: Positive | None = None
    host_memory: Bytes | None = None
    host: Literal["auto", "linux", "wsl2"] = "auto"
    display: bool = False
    price: float | None = None


class Spread(Section):
    """Lengths with a spread: mean and 95th percentile, in tokens."""

    mean: Positive
    p95: Positive


class Workload(Section):
    input_tokens: Positive | Spread
    output_tokens: Positive | Spread
    concurrency: Positive | None = None
    request_rate: Rate | None = None
    shared_prefix_tokens: Annotated[int, Field(ge=0, le=LARGEST)] = 0
    max_context: Positive | None = None


class Sla(Section):
    ttft_p95: Seconds | None = None
    tpot_p95: Seconds | None = None
    e2e_p95: Seconds | None = None
    requests_per_second: Rate | None = None
    tokens_per_second: Rate | None = None
    full_length_requests: Positive | None = None
