"""A launch with its flags placed -> the values of a deploy.yaml, a comment where something is changed or guessed."""

from __future__ import annotations

import re
from math import prod
from typing import Any

from deployc.adopt.engine import Engine, is_official
from deployc.adopt.flags import Placed, placed
from deployc.source.secrets import secret_name, secret_value
from deployc.types.facts import MOST_CARDS
from deployc.types.launch import FoundLaunch, Piece

INPUT, OUTPUT, REQUESTS = 1000, 250, 32
"""Placeholders: a launch says nothing of what is asked of the engine."""
_DEVICE = re.compile(r"\d{1,4}\Z|(?:GPU|MIG)-[0-9A-Za-z/-]{4,80}\Z")
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]*\Z")
_CACHES = ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "TRANSFORMERS_CACHE", "VLLM_CACHE_ROOT", "HOME", "PATH",
           "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "PYTHONPATH", "LD_LIBRARY_PATH")  # fmt: skip
_TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_TOKEN", "MODELSCOPE_API_TOKEN")
_KEYS = ("VLLM_API_KEY",)
CARDS = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")


def values(launch: FoundLaunch, engine: Engine, gpu: str | None) -> Placed:
    """All keys of the deploy.yaml, dotted, in the order of the contract."""
    found = placed(launch, engine)
    flags, found.keys = found.keys, {}
    found.key("version", 1)
    found.key("name", _name(launch))
    found.key("model.source", launch.model.value if launch.model else "")
    if _is_on(launch.env.get("VLLM_USE_MODELSCOPE")):
        found.key("model.hub", "modelscope", "was VLLM_USE_MODELSCOPE")
    if (endpoint := launch.env.get("HF_ENDPOINT")) is not None:
        found.key("model.endpoint", endpoint.value, "was HF_ENDPOINT")
    found.keys |= {key: value for key, value in flags.items() if key.startswith(("model.", "adapters", "quantization"))}
    _parallel(found, flags)
    _hardware(found, launch, gpu, _ranks(found, flags))
    _workload(found, flags.get("workload.max_context"))
    found.key("engine.version", engine.facts.version)
    if (image := _image(launch, engine)) is not None:
        found.key("engine.image", image)
    found.keys |= {key: value for key, value in flags.items() if key.startswith("engine.")}
    if environment := _environment(found, launch):
        found.key("engine.env", environment)
    if found.args:
        found.key("engine.args", found.args)
    found.keys |= {key: value for key, value in flags.items() if key.startswith("api.")}
    _target(found, launch)
    return found


def _image(launch: FoundLaunch, engine: Engine) -> str | None:
    """The image where it is not the default of that version: one of somebody else's, or one that is pinned."""
    image = launch.image.value if launch.image is not None and launch.source != "dockerfile" else ""
    moving = is_official(launch) and "@" not in image and launch.tag in ("", "latest", "nightly")
    return None if moving or image in ("", engine.facts.image) or not _IMAGE.match(image) else image


def _name(launch: FoundLaunch) -> str:
    """A DNS label of the service's name, else of the model's."""
    said = launch.name or (launch.model.value.rstrip("/").rpartition("/")[2] if launch.model else "")
    label = re.sub(r"[^a-z0-9]+", "-", said.lower()).strip("-")[:60].strip("-")
    return label or "imported"


def _parallel(found: Placed, flags: dict[str, Any]) -> None:
    """`--data-parallel-size N` as N engines, one beside the other; with experts spread over them it is one engine."""
    data = found.args.get("data-parallel-size")
    if isinstance(data, int) and data > 1 and not _spread(found, flags):
        del found.args["data-parallel-size"]
        flags["engine.parallel.replicas"] = data
        found.comments["engine.parallel.replicas"] = f"was --data-parallel-size {data}"


def _spread(found: Placed, flags: dict[str, Any]) -> bool:
    return bool(found.args.get("enable-expert-parallel") or flags.get("engine.parallel.expert"))


def _ranks(found: Placed, flags: dict[str, Any]) -> int:
    """Cards that the launch takes."""
    sizes = [flags.get(f"engine.parallel.{key}", 1) for key in ("tensor", "pipeline", "replicas")]
    sizes += [found.args.get(name, 1) for name in ("data-parallel-size", "pipeline-parallel-size")]
    return prod(size for size in sizes if isinstance(size, int) and 0 < size < MOST_CARDS)


def _hardware(found: Placed, launch: FoundLaunch, gpu: str | None, ranks: int) -> None:
    devices = devices_of(launch)
    count = min(max(len(devices), ranks), MOST_CARDS)
    if gpu is not None:
        found.key("hardware.gpu", gpu)
    else:
        found.key("hardware.gpu", "auto", "a launch does not say the card: name it, e.g. rtx-4090, to plan elsewhere")
    if count > 1:
        found.key("hardware.count", count)
    if devices and len(devices) == count:
        found.key("hardware.devices", [int(one) if one.isdecimal() else one for one in devices])


def devices_of(launch: FoundLaunch) -> list[str]:
    """The cards that a launch names, by index or UUID; empty where it names none."""
    for card in launch.cards:
        if card.device_ids:
            named = [one for one in card.device_ids if _DEVICE.match(one)]
            return named if len(named) == len(card.device_ids) else []
    for variable in CARDS:
        piece = launch.env.get(variable)
        ids = [one.strip() for one in piece.value.split(",")] if piece is not None else []
        if ids and all(_DEVICE.match(one) for one in ids) and len(set(ids)) == len(ids):
            return ids
    return []


def _workload(found: Placed, longest: int | None) -> None:
    fits = longest is None or longest >= INPUT + OUTPUT
    share = 1 if fits or longest is None else longest / (INPUT + OUTPUT)
    said = "a launch does not say the load: write yours"
    found.key("workload.input_tokens", max(1, int(INPUT * share)), said)
    found.key("workload.output_tokens", max(1, int(OUTPUT * share)))
    seqs = found.args.get("max-num-seqs")
    requests = min(REQUESTS, seqs) if isinstance(seqs, int) and not isinstance(seqs, bool) and seqs > 0 else REQUESTS
    found.key("workload.concurrency", requests)
    if longest is not None:
        found.key("workload.max_context", longest)


def _environment(found: Placed, launch: FoundLaunch) -> dict[str, str]:
    """The variables that the engine is to see; those that a key of deploy.yaml sets, and secrets, are none of them."""
    kept: dict[str, str] = {}
    for name, piece in launch.env.items():
        if name in ("VLLM_USE_MODELSCOPE", "HF_ENDPOINT", *_TOKENS, *_KEYS, *CARDS):
            continue
        if name in _CACHES:
            found.left_out.append((f"{name}={piece.value}", "a path of that host; deployc mounts its own caches"))
        elif secret_name(name) or secret_value(piece.value):
            found.left_out.append((name, "it looks like a secret: the engine's own environment must bring it"))
        elif re.match(r"[A-Za-z_][A-Za-z0-9_]*\Z", name):
            kept[name] = piece.value
    return kept


def _target(found: Placed, launch: FoundLaunch) -> None:
    kind = {"docker": "docker", "dockerfile": "docker", "compose": "compose", "unit": "systemd"}.get(launch.source)
    found.key("target.kind", kind or "process")
    address, port = listens(launch)
    found.key("target.bind", address or "127.0.0.1")
    if not address:
        found.comments["target.bind"] = "vLLM listens on every address unless told: here only what is asked for"
    found.key("target.port", port)
    if has_key(launch):
        found.key("target.api_key", {"env": "DEPLOYC_API_KEY"}, "export it where deployc runs; never in a file")
    if token := next((name for name in _TOKENS if name in launch.env), None):
        found.key("target.hub_token", {"env": token})


def listens(launch: FoundLaunch) -> tuple[str, int]:
    """The address that others reach, "" where it is left to the engine, and the port."""
    inner, host = _port(launch.flag("port")), launch.flag("host")
    if launch.image is not None and not on_host_network(launch):
        published = next(iter(launch.published), None)
        if published is None:
            return "", inner
        outer = int(published.host) if published.host.isdecimal() and 0 < int(published.host) < 65536 else inner
        return published.address or "0.0.0.0", outer  # noqa: S104  (what Docker does)
    return (host.text if host is not None else ""), inner


def on_host_network(launch: FoundLaunch) -> bool:
    """Whether a container has the host's own network."""
    return launch.network is not None and launch.network.value == "host"


def has_key(launch: FoundLaunch) -> bool:
    """Whether the engine asks for a key: a flag, a variable, or a file of variables that may hold one."""
    return launch.flag("api-key") is not None or any(name in launch.env for name in _KEYS)


def _port(flag: Any) -> int:
    text = flag.text if flag is not None else ""
    return int(text) if text.isdecimal() and 0 < int(text[:6]) < 65536 else 8000


def _is_on(piece: Piece | None) -> bool:
    return piece is not None and piece.value.strip().lower() in ("1", "true", "yes", "on")
