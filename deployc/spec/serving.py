"""deploy.yaml as pydantic models: engine, API, build, target and rollout sections."""

from typing import Annotated, Any, Literal

from pydantic import Field

from deployc.spec.model import SILENT, Bytes, Fraction, Positive, Seconds, Section

Port = Annotated[int, Field(ge=1, le=65535)]


class Parallel(Section):
    tensor: Positive | Literal["auto"] = "auto"
    pipeline: Positive = 1
    data: Positive = 1
    expert: bool = False
    replicas: Positive | Literal["auto"] = "auto"


class Offload(Section):
    weights: Bytes = 0
    kv: Bytes = 0


class Engine(Section):
    name: Literal["vllm"] = "vllm"
    version: str
    image: str | None = None
    python: str = "auto"
    parallel: Parallel = SILENT
    gpu_memory_utilization: Fraction | Literal["auto"] = "auto"
    offload: Offload = SILENT
    speculative: dict[str, Any] | None = None
    env: dict[str, str] = Field(default_factory=dict)
    args: dict[str, Any] = Field(default_factory=dict)


class Api(Section):
    served_model_name: list[str] = Field(default_factory=list)
    chat_template: str | None = None
    tool_call_parser: str | None = None
    reasoning_parser: str | None = None
    generation: dict[str, Any] = Field(default_factory=dict)
    servers: Positive | Literal["auto"] = "auto"


class Build(Section):
    python: str = "auto"
    store: str = "auto"


class SecretRef(Section):
    """Where a secret is read when it is needed; exactly one of the two. Never a literal."""

    env: str | None = None
    file: str | None = None


class Target(Section):
    kind: Literal["process", "docker", "compose", "systemd", "kubernetes"] = "docker"
    docker_host: str | None = None
    bind: str = "127.0.0.1"
    port: Port = 8000
    api_key: SecretRef | None = None
    hub_token: SecretRef | None = None
    image_mode: Literal["mount", "bake"] = "mount"
    state: str = "auto"
    volumes: list[str] = Field(default_factory=list)
    networks: list[str] = Field(default_factory=list)
    labels: dict[str, str] = Field(default_factory=dict)
    extra_hosts: list[str] = Field(default_factory=list)
    http_proxy: str = "inherit"


class Rollout(Section):
    strategy: Literal["auto", "side-by-side", "stop-first"] = "auto"
    edge: Literal["auto", "haproxy", "none"] = "auto"
    drain_timeout: Seconds | Literal["auto"] = "auto"
    health_timeout: Seconds | Literal["auto"] = "auto"
    golden: str | None = None
    keep: Positive = 5


class Accept(Section):
    code: str
    reason: Annotated[str, Field(min_length=1)]
