"""deploy.yaml as pydantic models: engine, API, build, target and rollout sections."""

from typing import Annotated, Any, Literal

from pydantic import Field

from deployc import units
from deployc.spec import values
from deployc.spec.model import Bytes, Name, Positive, Text
from deployc.spec.section import SILENT, Read, Section

Port = Annotated[int, values.whole(1, 65535)]
Variable = Annotated[str, Read(values.string, {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"})]
Setting = Annotated[str, Read(values.string, {"type": "string"})]
CountOrAuto = Annotated[int | Literal["auto"], values.auto_or(values.whole(1))]
SecondsOrAuto = Annotated[
    float | Literal["auto"], values.auto_or(values.quantity(units.parse_seconds, "a duration", "90s", positive=True))
]
Version = Annotated[str, Read(values.release, {"type": "string", "pattern": r"^[0-9]+\.[0-9]+\.[0-9]+"})]
Address = Annotated[str, Read(values.string, {"type": "string", "minLength": 1, "examples": ["127.0.0.1"]})]


class Parallel(Section):
    tensor: CountOrAuto = "auto"
    pipeline: Positive = 1
    data: Positive = 1
    expert: bool = False
    replicas: CountOrAuto = "auto"


class Offload(Section):
    weights: Bytes = 0
    kv: Bytes = 0


class Engine(Section):
    name: Literal["vllm"] = "vllm"
    version: Version
    image: Name | None = None
    python: Text = "auto"
    parallel: Parallel = SILENT
    gpu_memory_utilization: Annotated[
        float | Literal["auto"], values.auto_or(values.quantity(values.share, "a share", "90%", bare=True))
    ] = "auto"
    offload: Offload = SILENT
    speculative: dict[str, Any] | None = None
    env: dict[Variable, Setting] = Field({})
    args: dict[str, Any] = Field({})


class Api(Section):
    served_model_name: list[Name] = Field([])
    chat_template: Text | None = None
    tool_call_parser: Name | None = None
    reasoning_parser: Name | None = None
    generation: dict[str, Any] = Field({})
    servers: CountOrAuto = "auto"


class Build(Section):
    python: Text = "auto"
    store: Text = "auto"


class SecretRef(Section):
    """Where a secret is read when it is needed; exactly one of the two. Never a literal."""

    env: Variable | None = None
    file: Text | None = None


class Target(Section):
    kind: Literal["process", "docker", "compose", "systemd", "kubernetes"] = "docker"
    docker_host: Text | None = None
    bind: Address = "127.0.0.1"
    port: Port = 8000
    api_key: SecretRef | None = None
    hub_token: SecretRef | None = None
    image_mode: Literal["mount", "bake"] = "mount"
    state: Text = "auto"
    volumes: list[Text] = Field([])
    networks: list[Name] = Field([])
    labels: dict[Name, Setting] = Field({})
    extra_hosts: list[Name] = Field([])
    http_proxy: Text = "inherit"


class Rollout(Section):
    strategy: Literal["auto", "side-by-side", "stop-first"] = "auto"
    edge: Literal["auto", "haproxy", "none"] = "auto"
    drain_timeout: SecondsOrAuto = "auto"
    health_timeout: SecondsOrAuto = "auto"
    golden: Text | None = None
    keep: Positive = 5


class Accept(Section):
    code: Annotated[str, Read(values.string, {"type": "string", "pattern": "^DC[0-9]{3}$"})]
    reason: Text
