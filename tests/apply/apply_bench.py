"""A deployment on a stand-in engine, for the tests of apply: everything of it lies in one temporary folder."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deployc.apply.execute import Applied, Job, execute
from deployc.apply.observe import observe
from deployc.apply.progress import Progress, Silent
from deployc.apply.state import State
from deployc.spec.deploy import bind
from deployc.types.bundle import Bundle, EngineFlag, Launch, Recipe
from deployc.types.figure import Figure, exact
from deployc.types.plan import Action, Plan, Step
from deployc.types.prediction import Memory, Prediction, SingleStream, Speed

ENGINE = Path(__file__).parent / "standin" / "vllm.py"
SERVED = "stand-in"


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def make_engine(prefix: Path, version: str = "0.32.0") -> Path:
    """A folder like a virtual environment with the stand-in as its vllm."""
    packages = prefix / "lib" / "python3.11" / "site-packages"
    metadata = packages / f"vllm-{version}+cpu.dist-info"
    (packages / "vllm" / "engine").mkdir(parents=True)
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n")
    (packages / "vllm" / "engine" / "arg_utils.py").write_text(
        '"--max-model-len" "--served-model-name" "--host" "--port" "--dtype" "--kv-cache-dtype" "--enforce-eager" '
        '"--tensor-parallel-size" "--max-num-seqs" "--max-num-batched-tokens" "--enable-prefix-caching" '
        '"--shutdown-timeout"\n'
    )
    (prefix / "bin").mkdir()
    (prefix / "bin" / "python").symlink_to(sys.executable)
    program = prefix / "bin" / "vllm"
    program.write_text(f"#!{sys.executable}\n{ENGINE.read_text()}")
    program.chmod(0o755)
    return prefix


def figure(value: float, unit: str) -> Figure:
    """A figure without a band, where a prediction is needed and not looked at."""
    return exact(value, unit)


def prediction(startup: float = 1.0) -> Prediction:
    """A prediction of which apply reads only the time to start."""
    none, rate, time = figure(0, "B"), figure(1, "1/s"), figure(1, "s")
    return Prediction(
        memory=Memory(none, none, none, none, none, none, none, none),
        kv_cache_tokens=figure(0, "tokens"),
        usable_kv_cache_tokens=figure(0, "tokens"),
        max_concurrency=figure(0, "requests"),
        kv_bytes_per_token=none,
        speed=Speed(time, time, time, time, time, rate, rate),
        single_stream=SingleStream(rate, rate, "cpu"),
        capacity=rate,
        bound_by="load",
        startup_seconds=figure(startup, "s"),
    )


@dataclass(frozen=True)
class Bench:
    """`root` holds the deploy.yaml's folder, the model, the engine, state and store of one deployment."""

    root: Path
    port: int
    env: Mapping[str, str] = field(default_factory=dict)  # of the shell that applies

    @property
    def state(self) -> State:
        return State(self.root / "state" / "deployc" / "qa")

    def bundle(
        self,
        digest: str = "a" * 64,
        *,
        standin: str = "",
        env: Mapping[str, str] | None = None,
        secrets: Mapping[str, str] | None = None,
        flags: tuple[EngineFlag, ...] = (),
        recipe: Recipe | None = None,
    ) -> Bundle:
        """A bundle as COMPILE makes them; `standin` says how the stand-in is to misbehave."""
        launch = Launch(
            argv=("vllm", "serve", "${DEPLOYC_MODEL}", "--served-model-name", SERVED, "--host", "127.0.0.1",
                  "--port", str(self.port), *(word for flag in flags for word in flag.argv)),
            env={**({"STANDIN": standin} if standin else {}), **(env or {})},
            secrets=secrets or {},
            paths={"DEPLOYC_MODEL": f"store:{recipe.key}" if recipe else "folder:model"},
            flags=flags,
            served_name=SERVED,
            port=self.port,
            bind="127.0.0.1",
        )  # fmt: skip
        files = {"command.txt": "vllm serve\n", "manifest.json": "{}\n"}
        return Bundle("qa", f"sha256:{digest}", files, (launch,), recipe, "process")

    def job(self, bundle: Bundle, **rollout: Any) -> Job:
        """The job of a bundle; health is waited for 10 s and drained for 2 s unless told otherwise."""
        values = {
            "version": 1,
            "name": "qa",
            "model": {"source": "./model"},
            "hardware": {"gpu": "cpu"},
            "workload": {"input_tokens": 10, "output_tokens": 10, "concurrency": 1},
            "engine": {"version": "0.32.0", "python": str(self.root / "engine" / "bin" / "python")},
            "target": {"kind": "process", "port": self.port},
            "rollout": {"health_timeout": "10s", "drain_timeout": "2s", **rollout},
        }
        base = {"PATH": os.environ["PATH"], "HOME": str(self.root), "XDG_STATE_HOME": str(self.root / "state")}
        return Job(
            deploy=bind(values, {}, str(self.root)),
            bundle=bundle,
            prediction=prediction(),
            folder=self.root,
            store=self.root / "store",
            env={**base, **self.env},
            build=lambda recipe: (self.root / "store" / recipe.key).mkdir(parents=True),
        )

    def apply(self, bundle: Bundle, progress: Progress | None = None, **rollout: Any) -> Applied:
        """Plan against what runs and execute."""
        job = self.job(bundle, **rollout)
        return execute(self.plan(bundle), job, progress or Silent())

    def plan(self, bundle: Bundle) -> Plan:
        """The steps that a plan of this bundle has now."""
        seen = observe(bundle, self.state, self.root / "store")
        if seen.digest == bundle.digest and seen.healthy:
            return Plan({}, (Step("engine", "keep", "qa", "it runs and nothing changes"),), changes=False)
        build = (Step("build", "build", "artifact", "not in the store"),) if seen.artifact is False else ()
        action: Action = "replace" if seen.digest else "create"
        taken = (
            *build,
            Step("engine", action, "qa", "the bundle is another"),
            Step("verify", "verify", "qa", "always"),
        )
        return Plan({}, taken, changes=True)


def make_bench(root: Path) -> Bench:
    """A deployment's folder with a model and the stand-in engine."""
    (root / "model").mkdir()
    (root / "model" / "config.json").write_text("{}")
    make_engine(root / "engine")
    return Bench(root, free_port())


def main() -> None:
    """`python apply_bench.py ROOT PORT BUNDLE-OPTIONS`: apply in a process of its own, which a test can kill."""
    root, port, options = Path(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])
    bench = Bench(root, port)
    rollout = options.pop("rollout", {})
    try:
        bench.apply(bench.bundle(**options), **rollout)
    except BaseException as failure:
        print(failure, file=sys.stderr)
        sys.exit(getattr(failure, "exit_code", 130 if isinstance(failure, KeyboardInterrupt) else 1))


if __name__ == "__main__":
    main()
