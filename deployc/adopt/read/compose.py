"""A compose file -> one `FoundLaunch` a service that runs vLLM. Variables keep their default, unset ones their name."""

from __future__ import annotations

import re
from collections.abc import Iterator

from deployc.adopt.read.docker_run import by_cdi, environment, published
from deployc.adopt.read.program import runs_vllm
from deployc.adopt.read.words import split
from deployc.source.tree import Map, Node, Scalar, Seq
from deployc.types.launch import FoundLaunch, Health, Piece, Published, Reservation

_VARIABLE = re.compile(r"\$(?:\$|\{([A-Za-z_]\w*)(?::?([-+?])([^{}]*))?\}|([A-Za-z_]\w*))")


def launches(root: Map) -> Iterator[FoundLaunch]:
    """The services that name vLLM in their image, command or entrypoint, in the order of the file."""
    services = root.entries.get("services")
    for name, service in services.entries.items() if isinstance(services, Map) else ():
        if isinstance(service, Map) and _serves(service):
            yield _launch(name, service)


def _serves(service: Map) -> bool:
    image = text(service.entries.get("image"))
    run = [piece for key in ("entrypoint", "command") for piece in words(service.entries.get(key))]
    return runs_vllm(image.value if image else "", run)


def _launch(name: str, service: Map) -> FoundLaunch:
    def one(key: str) -> Piece | None:
        return text(service.entries.get(key))

    entrypoint, command = service.entries.get("entrypoint"), service.entries.get("command")
    return FoundLaunch(
        source="compose",
        at=service.span,
        name=name,
        image=one("image") or Piece("", service.span),
        entrypoint=tuple(words(entrypoint)) if entrypoint is not None else None,
        arguments=tuple(words(command)),
        env=_environment(service.entries.get("environment")),
        env_files=tuple(piece for piece in _listed(service.entries.get("env_file"), "path")),
        published=tuple(_published(service.entries.get("ports"))),
        network=one("network_mode"),
        ipc=one("ipc"),
        shm_size=one("shm_size"),
        cards=tuple(_cards(service)),
        runtime=one("runtime"),
        restart=_restart(service),
        user=one("user"),
        volumes=tuple(_volumes(service.entries.get("volumes"))),
        health=_health(service.entries.get("healthcheck")),
        grace=one("stop_grace_period"),
        depends=_depends(service.entries.get("depends_on")),
    )


def text(node: Node | None) -> Piece | None:
    """A scalar as compose puts variables in; None for anything else and for nothing."""
    if not isinstance(node, Scalar) or node.value is None:
        return None
    return Piece(put_in(node.text), node.span)


def _text(node: Node | None) -> str:
    found = text(node)
    return found.value if found is not None else ""


def put_in(value: str) -> str:
    """`${NAME:-default}` is its default, `$$` a dollar; a variable without default stays as it is written."""
    return _VARIABLE.sub(lambda m: "$" if m[0] == "$$" else m[3] if m[2] == "-" else m[0], value)


def words(node: Node | None) -> list[Piece]:
    """`command:` as a list of words, or as one text that compose splits as a shell does (no shell runs)."""
    if isinstance(node, Seq):
        return [piece for item in node.items if (piece := text(item)) is not None]
    found = text(node)
    return split(found) if found is not None else []


def _listed(node: Node | None, key: str) -> Iterator[Piece]:
    for item in node.items if isinstance(node, Seq) else [node]:
        found = text(item.entries.get(key) if isinstance(item, Map) else item)
        if found is not None:
            yield found


def _environment(node: Node | None) -> dict[str, Piece]:
    if isinstance(node, Map):
        return {name: piece for name, value in node.entries.items() if (piece := text(value)) is not None}
    return environment(list(_listed(node, "")))


def _published(node: Node | None) -> Iterator[Published]:
    for item in node.items if isinstance(node, Seq) else ():
        if isinstance(item, Map):
            address, host, container = (_text(item.entries.get(key)) for key in ("host_ip", "published", "target"))
            yield Published(address, host, container, item.span)
        elif (piece := text(item)) is not None:
            yield published(piece)


def _cards(service: Map) -> Iterator[Reservation]:
    devices = _inside(service, "deploy", "resources", "reservations", "devices")
    for node in (devices, service.entries.get("gpus")):
        for item in node.items if isinstance(node, Seq) else ():
            if isinstance(item, Map):
                yield _reservation(item)
    yield from (
        by_cdi(piece) for piece in _listed(service.entries.get("devices"), "") if "nvidia.com/gpu=" in piece.value
    )
    if (every := text(service.entries.get("gpus"))) is not None:
        yield Reservation(every.at, count=every.value, driver="nvidia", capabilities=("gpu",))


def _reservation(item: Map) -> Reservation:
    count, driver = text(item.entries.get("count")), text(item.entries.get("driver"))
    ids = tuple(piece.value for piece in _listed(item.entries.get("device_ids"), ""))
    capabilities = words(item.entries.get("capabilities"))
    return Reservation(
        item.keys.get("count", item.span) if ids else item.span,
        count=count.value if count else "",
        device_ids=ids,
        driver=driver.value if driver else "",
        capabilities=tuple(piece.value for piece in capabilities),
    )


def _health(node: Node | None) -> Health | None:
    test = node.entries.get("test") if isinstance(node, Map) else None
    if not isinstance(node, Map) or test is None:
        return None
    one = text(test)
    command = ("CMD-SHELL", one.value) if one is not None else tuple(piece.value for piece in words(test))
    start, interval, retries = (text(node.entries.get(key)) for key in ("start_period", "interval", "retries"))
    return Health(command, test.span, start, interval, retries) if command else None


def _restart(service: Map) -> Piece | None:
    """`restart:`, or swarm's `deploy.restart_policy` as "on-failure:3" and the like."""
    if (plain := text(service.entries.get("restart"))) is not None:
        return plain
    policy = _inside(service, "deploy", "restart_policy")
    if not isinstance(policy, Map):
        return None
    condition, limit = text(policy.entries.get("condition")), text(policy.entries.get("max_attempts"))
    written = condition.value if condition else "any"
    return Piece(f"{written}:{limit.value}" if limit else written, policy.span)


def _volumes(node: Node | None) -> Iterator[Piece]:
    for item in node.items if isinstance(node, Seq) else ():
        if isinstance(item, Map):
            yield Piece(f"{_text(item.entries.get('source'))}:{_text(item.entries.get('target'))}", item.span)
        elif (piece := text(item)) is not None:
            yield piece


def _depends(node: Node | None) -> dict[str, str]:
    if isinstance(node, Map):
        conditions = {
            name: text(entry.entries.get("condition")) for name, entry in node.entries.items() if isinstance(entry, Map)
        }
        return {name: piece.value if piece else "" for name, piece in conditions.items()}
    return {piece.value: "service_started" for piece in _listed(node, "") if node is not None}


def _inside(node: Node | None, *path: str) -> Node | None:
    for key in path:
        node = node.entries.get(key) if isinstance(node, Map) else None
    return node
