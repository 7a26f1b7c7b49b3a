"""The whole deploy.yaml, and where in the user's files each of its values was written."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, PrivateAttr

from deployc.diagnostics import Span
from deployc.spec import values
from deployc.spec.model import Adapter, Hardware, Model, Quantization, Sla, Workload
from deployc.spec.section import SILENT, Read, Section
from deployc.spec.serving import Accept, Api, Build, Engine, Rollout, Target

Path = tuple[str | int, ...]


class Deploy(Section):
    """deploy.yaml, version 1. Names are the contract: see docs/reference.md."""

    model_config = ConfigDict(title="deploy.yaml")

    version: Literal[1]
    name: Annotated[str, Read(values.string, {"type": "string", "pattern": "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"})]
    model: Model
    adapters: list[Adapter] = Field([])
    quantization: Quantization = SILENT
    hardware: Hardware
    workload: Workload
    sla: Sla = SILENT
    engine: Engine
    api: Api = SILENT
    build: Build = SILENT
    target: Target = SILENT
    rollout: Rollout = SILENT
    accept: list[Accept] = Field([])

    _spans: Mapping[Path, Span] = PrivateAttr({})
    _folder: str = PrivateAttr(default=".")

    @property
    def folder(self) -> str:
        """The folder of the deploy.yaml: relative paths in it start there."""
        return self._folder

    def at(self, dotted: str | Path) -> Span | None:
        """Where a value was written, e.g. `at("hardware.gpu")`; its nearest parent's place where the file is silent."""
        path: Path = tuple(dotted.split(".")) if isinstance(dotted, str) else dotted
        path = tuple(int(p) if isinstance(p, str) and p.isdecimal() else p for p in path)
        for end in range(len(path), -1, -1):
            if (span := self._spans.get(path[:end])) is not None:
                return span
        return None

    def written(self, dotted: str) -> bool:
        """Whether the file itself sets this value (so that it is the user's and not ours)."""
        return tuple(int(p) if p.isdecimal() else p for p in dotted.split(".")) in self._spans

    def because(self, dotted: str) -> str:
        """The `because` of a value the user wrote: "deploy.yaml:31"."""
        span = self.at(dotted)
        return f"{span.file}:{span.line}" if span else "default"


def bind(values: Mapping[str, Any], spans: Mapping[Path, Span], folder: str = ".") -> Deploy:
    """Validate plain values into a Deploy that knows its spans; raises pydantic's ValidationError."""
    deploy = Deploy.model_validate(values)
    deploy._spans = spans
    deploy._folder = folder
    return deploy
