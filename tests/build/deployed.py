"""A deploy.yaml beside a small model and its adapter: what `deployc build` is called on."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from adapted import Small


def deploy_yaml(small: Small, name: str = "lab", file: str = "deploy.yaml", **sections: Any) -> Path:
    """Write one for the CPU, its store beside it; `sections` replace those of the file."""
    text = {
        "version": 1,
        "name": name,
        "model": {"source": "./model"},
        "adapters": [{"name": adapter, "source": f"./{adapter}"} for adapter in small.adapters],
        "hardware": {"gpu": "cpu", "host_memory": "8GiB"},
        "workload": {"input_tokens": 10, "output_tokens": 10, "concurrency": 1},
        "engine": {"version": "0.32.0"},
        "build": {"store": "./store"},
        "target": {"kind": "process", "bind": "127.0.0.1", "port": 18000},
    }
    path = small.root / file
    path.write_text(json.dumps(text | sections, indent=1))
    return path


def environment(small: Small) -> dict[str, str]:
    """The tests' own environment, with every folder of the user's inside the small one."""
    own = {name: str(small.root / "home") for name in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME")}
    return {**os.environ, **own, "NO_PROXY": "*"}
