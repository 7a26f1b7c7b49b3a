"""Every file of the bundle: the same configuration as a command, an image, a Compose file, systemd units."""

from __future__ import annotations

from collections.abc import Mapping

from deployc.emit.launch import CONTAINER_PORT
from deployc.emit.manifest import manifest
from deployc.emit.paths import filled, in_container, in_state_folder
from deployc.emit.render import render
from deployc.emit.shipment import Shipment
from deployc.types.bundle import Launch

CONTAINER_HEALTH = ("python3", "/deployc/health.py", f"http://127.0.0.1:{CONTAINER_PORT}/health")


def files(shipment: Shipment, digest: str) -> dict[str, str]:
    """Path -> text; `digest` is the bundle's, 64 hex digits."""
    name = shipment.name
    common = {"name": name, "engine": f"{shipment.engine} {shipment.version}", "digest": f"sha256:{digest}"}
    made = {
        "command.txt": _command(shipment, common),
        "Dockerfile": _dockerfile(shipment, common),
        "compose.yaml": _compose(shipment, digest, common),
        "entrypoint.sh": render("entrypoint.sh.j2", secrets=list(shipment.host[0].secrets)),
        "health.py": render("health.py.j2"),
        "manifest.json": manifest(shipment, digest),
        "env.example": render("env.example.j2", name=name, variables=_variables(shipment)),
    }
    for unit, launch in zip(_names(name, len(shipment.host)), shipment.host, strict=True):
        made[f"{unit}.service"] = _unit(shipment, unit, launch, common)
    return made


def _command(shipment: Shipment, common: Mapping[str, str]) -> str:
    engines = [
        {"program": shipment.program, "flags": launch.flags, "env": launch.env, "secrets": launch.secrets}
        for launch in shipment.host
    ]
    return render(
        "command.txt.j2", **common, engines=engines, several=len(engines) > 1, places=_places(shipment.host[0])
    )


def _dockerfile(shipment: Shipment, common: Mapping[str, str]) -> str:
    launch = shipment.container[0]
    places = in_container(launch.paths)
    words = shipment.program[:-1]  # all but the model argument
    return render(
        "Dockerfile.j2",
        **common,
        image=shipment.image,
        bake=shipment.bake,
        artifact=places.get("DEPLOYC_MODEL", ""),
        env=launch.env,
        start=shipment.timing.start,
        health=CONTAINER_HEALTH,
        entrypoint=("/bin/sh", "/deployc/entrypoint.sh", *words),
        command=[filled(word, places) for word in launch.argv[len(words) :]],
    )


def _compose(shipment: Shipment, digest: str, common: Mapping[str, str]) -> str:
    launch = shipment.container[0]
    baked = {"DEPLOYC_MODEL"} if shipment.bake else set()
    return render(
        "compose.yaml.j2",
        **common,
        tag=f"deployc/{shipment.name}:{digest}",
        services=[
            {
                "name": service,
                "published": f"{_host(replica.bind)}:{replica.port}:{CONTAINER_PORT}",
                "devices": replica.devices,
            }
            for service, replica in zip(_names("engine", len(shipment.container)), shipment.container, strict=True)
        ],
        cards=bool(launch.devices),
        shm_size=f"{max(8, len(launch.devices))}gb" if len(launch.devices) > 1 else "1gb",  # NCCL's and torch's ranks
        mounts=[
            {"name": name, "target": target} for name, target in in_container(launch.paths).items() if name not in baked
        ],
        secrets=[{"name": name, "reference": reference} for name, reference in launch.secrets.items()],
        health=("CMD", *CONTAINER_HEALTH),
        start=shipment.timing.start,
        stop=shipment.timing.stop,
    )


def _unit(shipment: Shipment, unit: str, launch: Launch, common: Mapping[str, str]) -> str:
    folder = shipment.state
    places = in_state_folder(launch.paths, folder)
    first, *others = shipment.program
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(launch.bind, launch.bind)  # noqa: S104
    return render(
        "unit.service.j2",
        **common,
        unit=unit,
        folder=folder,
        program=[f"{folder}/engine/bin/{first}", *(filled(word, places) for word in others)],
        flags=[[filled(word, places) for word in flag.argv] for flag in launch.flags],
        health_url=f"http://{_host(reachable)}:{launch.port}/health",
        start=shipment.timing.start,
        stop=shipment.timing.stop,
        limit_interval=4 * (shipment.timing.start + 20),  # longer than three failed starts, or the limit never holds
        secrets=list(launch.secrets),
        env=launch.env,
        devices=bool(launch.devices),
        privileged_port=launch.port < 1024,  # of ip(7): not for a user without rights, which the unit's is
    )


def _variables(shipment: Shipment) -> list[dict[str, str]]:
    needed = _places(shipment.host[0])
    for name, reference in shipment.host[0].secrets.items():
        kind, _, where = reference.partition(":")
        if kind == "env":
            needed.append({"name": where, "what": f"the secret that the engine gets as {name}"})
    return needed


def _places(launch: Launch) -> list[dict[str, str]]:
    """The variables that stand for paths, and in words what each is."""
    what = {"store": "the folder of the artifact in the store, key", "folder": "the folder", "file": "the file"}
    places = []
    for name, content in launch.paths.items():
        kind, _, where = content.partition(":")
        places.append({"name": name, "what": f"{what[kind]} {where}"})
    if any(ref.startswith("file:") and not ref.startswith(("file:/", "file:~/")) for ref in launch.secrets.values()):
        places.append({"name": "DEPLOYC_FOLDER", "what": "the folder of the deploy.yaml"})
    return places


def _names(name: str, count: int) -> list[str]:
    return [name] if count == 1 else [f"{name}-{index}" for index in range(count)]


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address
