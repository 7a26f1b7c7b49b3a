"""What a type cannot say: keys that need or exclude each other, and names that must be safe to pass on."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from deployc.diagnostics import Diagnostic, error
from deployc.spec.deploy import Deploy
from deployc.spec.model import Spread

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]{0,127}\Z")
_ADAPTER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}\Z")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+(?:(?:\.?(?:post|dev|rc)|rc)[0-9]+)?\Z")
_FLAG = re.compile(r"-{0,2}[A-Za-z0-9][A-Za-z0-9_.-]*\Z")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def sense(deploy: Deploy) -> Iterator[Diagnostic]:
    """DC160-DC169, DC171: one generator a section."""
    yield from _workload(deploy)
    yield from _adapters(deploy)
    yield from _hardware(deploy)
    yield from _engine(deploy)
    yield from _names(deploy)
    yield from _secrets(deploy)


def _workload(deploy: Deploy) -> Iterator[Diagnostic]:
    load = deploy.workload
    if (load.concurrency is None) == (load.request_rate is None):
        both = load.concurrency is not None
        yield error(
            "DC160",
            "the load is not stated once",
            "workload takes exactly one of concurrency (closed loop) and request_rate (open loop); "
            + ("both are given." if both else "neither is given."),
            "remove one of them" if both else "add concurrency: 8, the requests in flight at once, or request_rate",
            deploy.at("workload.request_rate" if both else "workload"),
        )
    if load.request_rate == 0:
        yield error(
            "DC154",
            "a value is out of range",
            "workload.request_rate: 0 requests/s is no load.",
            "correct the value",
            deploy.at("workload.request_rate"),
        )
    for key in ("input_tokens", "output_tokens"):
        length = getattr(load, key)
        if isinstance(length, Spread) and length.p95 < length.mean:
            yield error(
                "DC162",
                "a 95th percentile lies below the mean",
                f"workload.{key}: p95 {length.p95} < mean {length.mean} tokens.",
                "swap or correct them",
                deploy.at(f"workload.{key}.p95"),
            )
    longest = load.input_tokens.mean if isinstance(load.input_tokens, Spread) else load.input_tokens
    if load.shared_prefix_tokens > longest:
        yield error(
            "DC171",
            "the shared prefix is longer than the prompt",
            f"workload.shared_prefix_tokens {load.shared_prefix_tokens} > input_tokens {longest}.",
            "the prefix is part of input_tokens: count it there",
            deploy.at("workload.shared_prefix_tokens"),
        )


def _adapters(deploy: Deploy) -> Iterator[Diagnostic]:
    seen: dict[str, int] = {}
    for index, adapter in enumerate(deploy.adapters):
        at = deploy.at(f"adapters.{index}.name")
        if not _ADAPTER.match(adapter.name):
            yield error(
                "DC166",
                "a name is not safe to pass on",
                f"adapters.{index}.name: {adapter.name!r} must begin with a letter or digit and hold only "
                "letters, digits, '.', '_' and '-', 63 at most.",
                "rename it",
                at,
            )
        if adapter.name in seen:
            yield error(
                "DC161",
                "two adapters have one name",
                f"{adapter.name!r} is adapter {seen[adapter.name]} already.",
                "rename one of them",
                at,
            )
        seen[adapter.name] = index


def _hardware(deploy: Deploy) -> Iterator[Diagnostic]:
    hardware = deploy.hardware
    listed = len(hardware.gpu) if isinstance(hardware.gpu, list) else None
    if listed == 0:
        yield error(
            "DC167",
            "the number of cards is not the same everywhere",
            "hardware.gpu is an empty list.",
            "name at least one card",
            deploy.at("hardware.gpu"),
        )
    elif listed is not None and deploy.written("hardware.count") and listed != hardware.count:
        yield error(
            "DC167",
            "the number of cards is not the same everywhere",
            f"hardware.gpu lists {listed}, hardware.count says {hardware.count}.",
            "make them equal",
            deploy.at("hardware.count"),
        )
    cards = listed or hardware.count
    if hardware.devices is not None and len(hardware.devices) != cards:
        yield error(
            "DC167",
            "the number of cards is not the same everywhere",
            f"hardware.devices names {len(hardware.devices)}, the deployment has {cards}.",
            "make them equal",
            deploy.at("hardware.devices"),
        )
    for index, device in enumerate(hardware.devices or []):
        if (isinstance(device, int) and device < 0) or (isinstance(device, str) and not _NAME.match(device)):
            yield error(
                "DC166",
                "a name is not safe to pass on",
                f"hardware.devices.{index}: {device!r} is neither an index nor a UUID.",
                "write 0, or GPU-… or MIG-… as nvidia-smi -L prints it",
                deploy.at(f"hardware.devices.{index}"),
            )


def _engine(deploy: Deploy) -> Iterator[Diagnostic]:
    engine = deploy.engine
    if not _VERSION.match(engine.version):
        yield error(
            "DC168",
            "the engine's version is not a release",
            f"engine.version: {engine.version!r}; 'latest' or a range would change under you.",
            "write a release, e.g. 0.33.0",
            deploy.at("engine.version"),
        )
    share = engine.gpu_memory_utilization
    if isinstance(share, float) and not 0 < share <= 1:
        yield error(
            "DC154",
            "a value is out of range",
            f"engine.gpu_memory_utilization: {share} is not in (0, 1].",
            "correct the value",
            deploy.at("engine.gpu_memory_utilization"),
        )
    seen: dict[str, str] = {}
    for name in engine.args:
        at = deploy.at(("engine", "args", name))
        canonical = name.lstrip("-").replace("_", "-")
        if not _FLAG.match(name):
            yield error(
                "DC165",
                "an engine flag is not well formed",
                f"{name!r} cannot be the name of a flag.",
                "write it as vLLM does, e.g. max-num-seqs",
                at,
            )
        if canonical in seen:
            yield error(
                "DC165",
                "an engine flag is not well formed",
                f"--{canonical} is set twice: as {seen[canonical]!r} and as {name!r}.",
                "keep one",
                at,
            )
        seen[canonical] = name
    for name, value in engine.env.items():
        if not _VARIABLE.match(name) or _CONTROL.search(value):
            yield error(
                "DC166",
                "a name is not safe to pass on",
                f"engine.env.{name!r}: the name must be letters, digits "
                "and _, the value one line without control characters.",
                "correct it",
                deploy.at(("engine", "env", name)),
            )


def _names(deploy: Deploy) -> Iterator[Diagnostic]:
    plain = {
        "model.source": deploy.model.source,
        "model.revision": deploy.model.revision,
        "engine.image": deploy.engine.image,
        "model.endpoint": deploy.model.endpoint,
        "engine.python": deploy.engine.python,
        "build.python": deploy.build.python,
        "build.store": deploy.build.store,
        "target.state": deploy.target.state,
        "api.chat_template": deploy.api.chat_template,
        "api.tool_call_parser": deploy.api.tool_call_parser,
        "api.reasoning_parser": deploy.api.reasoning_parser,
        **{f"adapters.{i}.source": a.source for i, a in enumerate(deploy.adapters)},
        **{f"api.served_model_name.{i}": name for i, name in enumerate(deploy.api.served_model_name)},
    }
    for dotted, value in plain.items():
        if value is None:
            continue
        strict = dotted.startswith(("api.served", "engine.image", "api.tool", "api.reasoning", "model.revision"))
        if not value.strip() or _CONTROL.search(value) or value.startswith("-") or (strict and not _NAME.match(value)):
            yield error(
                "DC166",
                "a name is not safe to pass on",
                f"{dotted}: {value[:80]!r} is empty, begins with '-', or holds characters that no name has.",
                "rename it",
                deploy.at(dotted),
            )
    bind = deploy.target.bind
    if bind != "localhost" and not _is_address(bind):
        yield error(
            "DC169",
            "the bind address is not an IP address",
            f"target.bind: {bind!r}.",
            "write 127.0.0.1 for this machine alone, or the address of one interface",
            deploy.at("target.bind"),
        )


def _secrets(deploy: Deploy) -> Iterator[Diagnostic]:
    for key in ("api_key", "hub_token"):
        reference, dotted = getattr(deploy.target, key), f"target.{key}"
        if reference is None:
            continue
        if (reference.env is None) == (reference.file is None):
            yield error(
                "DC163",
                "a secret's reference is not well formed",
                f"{dotted} takes exactly one of env and file.",
                "write {env: NAME} or {file: PATH}",
                deploy.at(dotted),
            )
        elif reference.env is not None and not _VARIABLE.match(reference.env):
            yield error(
                "DC163",
                "a secret's reference is not well formed",
                f"{dotted}.env is not the name of an environment variable.",
                "write its name, without $",
                deploy.at(dotted),
            )
        elif reference.file is not None and (not reference.file.strip() or _CONTROL.search(reference.file)):
            yield error(
                "DC163",
                "a secret's reference is not well formed",
                f"{dotted}.file is not a path.",
                "write the path of a file that holds the secret alone",
                deploy.at(dotted),
            )


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return False
    return True
