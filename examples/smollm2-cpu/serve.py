"""deployc as a subprocess, and what the served engine says of itself."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steps import AGAIN, StepFailed

CHECKOUT = Path(__file__).resolve().parents[2]
FILE = Path("examples") / Path(__file__).resolve().parent.name / "deploy.yaml"
CLEAN_UP_SECONDS = 60
ENVIRONMENT = dict(os.environ)
"""As the user has it: what the demo sets for its own libraries is not for the engine."""


def command(*arguments: str) -> list[str]:
    """The argv of `deployc ARGUMENTS -f deploy.yaml` in this interpreter."""
    return [sys.executable, "-m", "deployc", *arguments, "-f", str(FILE)]


def shown(*arguments: str) -> str:
    """The same as a person types it from the checkout."""
    return f"{Path(sys.prefix).name}/bin/deployc {' '.join(arguments)} -f {FILE}"


def deployc(*arguments: str, capture: bool = False) -> str:
    """Run a deployc command in the checkout; its output is shown, or returned with `capture`. Raises StepFailed.

    An interrupt reaches the command too, and it is given time to clean up after itself.
    """
    with subprocess.Popen(
        command(*arguments), cwd=CHECKOUT, text=True, env=ENVIRONMENT, stdout=subprocess.PIPE if capture else None
    ) as process:
        try:
            output, _ = process.communicate()
        except KeyboardInterrupt:
            process.wait(CLEAN_UP_SECONDS)
            raise
    if process.returncode == 130:
        raise KeyboardInterrupt
    if process.returncode != 0:
        raise StepFailed(
            f"`{shown(*arguments)}` ended with exit code {process.returncode}; what it says stands above",
            f"mend what it names, then: {AGAIN}",
        )
    return output or ""


def address() -> str:
    """http://BIND:PORT of the deploy.yaml."""
    from ruamel.yaml import YAML

    target = YAML(typ="safe").load(CHECKOUT / FILE)["target"]
    return f"http://{target['bind']}:{target['port']}"


@dataclass(frozen=True, slots=True)
class Served:
    """The engine's own account: name and folder of the model it serves, and the tokens of its KV cache."""

    name: str
    weights_bytes: int
    kv_cache_tokens: int


def served(url: str) -> Served:
    """Ask a running engine at /v1/models and /metrics; weight bytes are those of the folder it loaded."""
    import httpx

    try:
        models = httpx.get(f"{url}/v1/models", timeout=30, trust_env=False).raise_for_status().json()
        metrics = httpx.get(f"{url}/metrics", timeout=30, trust_env=False).raise_for_status().text
    except httpx.HTTPError as wrong:
        raise StepFailed(f"no engine answers at {url}: {wrong}", f"see {shown('logs')}; then: {AGAIN}") from wrong
    tokens = re.search(r'kv_cache_size_tokens="(\d+)"', metrics)
    if tokens is None:
        raise StepFailed(f"{url}/metrics does not say kv_cache_size_tokens: is this vLLM 0.32?")
    model = models["data"][0]
    return Served(model["id"], _tensor_bytes(Path(model["root"])), int(tokens[1]))


def _tensor_bytes(folder: Path) -> int:
    """Bytes of all tensors in a folder's safetensors files, by their headers."""
    total = 0
    for file in folder.glob("*.safetensors"):
        with file.open("rb") as opened:
            header: dict[str, Any] = json.loads(opened.read(int.from_bytes(opened.read(8), "little")))
        total += sum(t["data_offsets"][1] - t["data_offsets"][0] for n, t in header.items() if n != "__metadata__")
    return total
