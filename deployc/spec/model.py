"""deploy.yaml as pydantic models: what the model, adapter, hardware and workload sections may say."""

from typing import Annotated, Any, Literal

from pydantic import Field

from deployc import units
from deployc.spec import values
from deployc.spec.section import OneOrMany, OrShort, Read, Section
from deployc.types.facts import MOST_CARDS

Bytes = Annotated[int, values.quantity(values.size, "a size", "24GiB", bare=True)]
Seconds = Annotated[float, values.quantity(units.parse_seconds, "a duration", "800ms", positive=True)]
Rate = Annotated[float, values.quantity(units.parse_rate, "a rate", "8/s", positive=True, bare=True)]
Bandwidth = Annotated[float, values.quantity(units.parse_bandwidth, "a bandwidth", "1008GB/s")]
Flops = Annotated[float, values.quantity(units.parse_flops, "a compute rate", "165TFLOPS")]
Positive = Annotated[int, values.whole(1)]
Share = Annotated[float, values.quantity(units.parse_fraction, "a share", "3%", bare=True)]
Part = Annotated[float, values.quantity(values.share, "a share of a whole", "90%", bare=True)]
Text = Annotated[str, Read(values.string, {"type": "string", "minLength": 1})]
Name = Annotated[str, Read(values.string, {"type": "string", "pattern": r"""^[^\s"'\\-][^\s"'\\]*$"""})]
Device = Annotated[
    int | str,
    Read(values.device, {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": "^(GPU|MIG)-"}]}),
]


class Context(Section):
    """Longer context than the model's own positions, by scaling its rotary embedding."""

    rope: Literal["yarn"]
    factor: Annotated[float, values.number(above=1)]


class Model(Section):
    source: Text
    hub: Literal["huggingface", "modelscope"] = "huggingface"
    endpoint: Annotated[str, Read(values.string, {"type": "string", "pattern": "^https?://"})] | None = None
    revision: Name | None = None
    dtype: Literal["auto", "bfloat16", "float16"] = "auto"
    trust_remote_code: bool = False
    context: Context | None = None
    overrides: dict[str, Any] = Field({})


class Adapter(Section):
    name: Name
    source: Text
    revision: Name | None = None
    mode: Literal["merge", "serve"] | None = None
    weight: Annotated[float, values.number()] = 1.0


class Calibration(Section):
    """Text that calibrated formats look at, and that quality is measured on where it names none of its own."""

    data: Text
    samples: Positive = 256
    tokens: Positive = 2048
    smoothquant: Part | None = None


class Quality(Section):
    """Limits on what quantization may cost, on a text."""

    data: Text | None = None
    samples: Positive = 32
    tokens: Positive = 512
    max_perplexity_increase: Share | None = None
    max_mean_kl: Annotated[float, values.number(above=0)] | None = None
    min_top1_agreement: Part | None = None
    min_valid_json: Part | None = None


class Quantization(Section):
    weights: Literal[
        "none", "auto", "fp8", "int8", "int8-weight-only", "int4-gptq", "int4-awq", "int4-rtn", "checkpoint"
    ] = "none"
    group_size: Literal["auto", 32, 64, 128] = "auto"
    kv_cache: Literal["auto", "fp8"] = "auto"
    ignore: list[Text] = Field(["lm_head"])
    calibration: Calibration | None = None
    quality: Quality | None = None


class GpuFlops(Section):
    bf16: Flops | None = None
    fp8: Flops | None = None
    int8: Flops | None = None


class CustomGpu(Section):
    """A card without a profile: memory (what CUDA shows) and bandwidth suffice, the rest narrows the band."""

    memory: Bytes
    bandwidth: Bandwidth
    compute_capability: (
        Annotated[str | float, Read(values.capability, {"type": ["string", "number"], "examples": [8.9]})] | None
    ) = None
    flops: GpuFlops | None = None
    interconnect: Literal["nvlink", "pcie"] | None = None

    def written(self) -> dict[str, Any]:
        """The map as a file may have it: every figure with its unit, so that it is read again as the same."""
        found = self.model_dump(exclude_none=True) | {"bandwidth": f"{self.bandwidth:.0f}B/s"}
        rates = self.flops.model_dump(exclude_none=True) if self.flops else {}
        return found | ({"flops": {name: f"{rate:.0f}FLOPS" for name, rate in rates.items()}} if rates else {})


Gpu = Annotated[str | CustomGpu, OrShort(CustomGpu, Read(values.gpu, {"type": "string", "minLength": 1}))]


class Hardware(Section):
    gpu: Annotated[str | CustomGpu | list[str | CustomGpu], OneOrMany(Gpu)]
    count: Annotated[int, values.whole(1, MOST_CARDS)] = 1
    devices: list[Device] | None = None
    nodes: Positive = 1
    interconnect: Literal["auto", "nvlink", "pcie"] = "auto"
    driver: Annotated[str, Read(values.driver, {"type": "string", "pattern": r"^\d{3}(\.\d{1,3}){0,2}$"})] | None = None
    reserved_memory: Bytes = 0
    cpus: Positive | None = None
    host_memory: Bytes | None = None
    host: Literal["auto", "linux", "wsl2"] = "auto"
    display: bool = False
    price: Annotated[float, values.number(above=0)] | None = None


class Spread(Section):
    """Lengths with a spread: mean and 95th percentile, in tokens."""

    mean: Positive
    p95: Positive


Tokens = Annotated[int | Spread, OrShort(Spread, values.whole(1))]


class Workload(Section):
    input_tokens: Tokens
    output_tokens: Tokens
    concurrency: Positive | None = None
    request_rate: Rate | None = None
    shared_prefix_tokens: Annotated[int, values.whole(0)] = 0
    max_context: Positive | None = None


class Sla(Section):
    ttft_p95: Seconds | None = None
    tpot_p95: Seconds | None = None
    e2e_p95: Seconds | None = None
    requests_per_second: Rate | None = None
    tokens_per_second: Rate | None = None
    full_length_requests: Positive | None = None
