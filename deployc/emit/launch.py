"""One engine a replica: its command line, environment, cards and port, outside a container or in one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from deployc.emit.arguments import flag, origin
from deployc.emit.environment import device_variables
from deployc.spec.deploy import Deploy
from deployc.types.bundle import EngineFlag, Launch
from deployc.types.choices import Choice, Choices
from deployc.types.facts import Facts

CONTAINER_PORT = 8000


@dataclass(frozen=True, slots=True)
class Engine:
    """What all replicas share: the model argument, flags without host and port, variables, secrets, paths."""

    model: str
    flags: Sequence[EngineFlag]
    variables: Mapping[str, Choice[str]]
    secrets: Mapping[str, str]
    paths: Mapping[str, str]


def launches(deploy: Deploy, facts: Facts, choices: Choices, engine: Engine, *, container: bool) -> tuple[Launch, ...]:
    """One launch a replica: ports count up from `target.port`, cards are dealt out in order.

    In a container the engine listens on all of the container's addresses, port 8000; the target publishes it on
    `bind` and `port`.
    """
    cards = devices(deploy, facts)
    size = choices.tensor_parallel_size.value
    made = []
    for replica in range(choices.replicas.value):
        own = cards[replica * size : (replica + 1) * size]
        port = deploy.target.port + replica
        flags = (*engine.flags, *_listen(deploy, port, container))
        variables = {**engine.variables, **({} if container else device_variables(deploy, own))}
        made.append(
            Launch(
                argv=(*program(facts, engine.model), *(word for f in flags for word in f.argv)),
                env={name: choice.value for name, choice in variables.items()},
                secrets=engine.secrets,
                paths=engine.paths,
                flags=flags,
                served_name=_served_name(engine.flags, engine.model),
                port=port,
                bind=deploy.target.bind,
                devices=own,
            )
        )
    return tuple(made)


def devices(deploy: Deploy, facts: Facts) -> tuple[str, ...]:
    """The cards of the deployment by index or UUID: as written, else the first ones; none on a CPU."""
    if facts.devices[0].name == "cpu":
        return ()
    written = deploy.hardware.devices
    return tuple(str(device) for device in (written if written is not None else range(len(facts.devices))))


def program(facts: Facts, model: str) -> tuple[str, ...]:
    """The words before the flags. `vllm serve` takes the model as its positional argument, the module as `--model`."""
    words = tuple(facts.engine.entrypoint.split())
    return (*words, model) if words[-1] == "serve" else (*words, "--model", model)


def _served_name(flags: Sequence[EngineFlag], model: str) -> str:
    return next((f.argv[1] for f in flags if f.name == "served-model-name"), model)


def _listen(deploy: Deploy, port: int, container: bool) -> tuple[EngineFlag, EngineFlag]:
    if container:
        reason = f"inside the container; published on {deploy.target.bind}:{port}"
        return flag("host", "0.0.0.0", "default", reason), flag("port", CONTAINER_PORT, "default", reason)  # noqa: S104
    return (
        flag("host", deploy.target.bind, origin(deploy, "target.bind"), "target.bind"),
        flag("port", port, origin(deploy, "target.port"), "target.port"),
    )
