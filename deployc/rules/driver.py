"""NVIDIA's driver of the host against the CUDA of the image, or of the wheel.

Three things stand between an older driver and a newer CUDA: NVIDIA's container runtime, which compares before a
container starts; the driver's own major version of CUDA, within which newer ones run with fewer features; and NVIDIA's
library for newer CUDA on older drivers (cuda-compat), which runs on data-centre cards and not on GeForce.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from deployc.diagnostics import Diagnostic, Severity, error
from deployc.rules.case import Case
from deployc.types.drivers import older, parts

SWITCH = "VLLM_ENABLE_CUDA_COMPATIBILITY"
UNCHECKED = "NVIDIA_DISABLE_REQUIRE"
Verdict = tuple[Severity, str, list[str]]
"""How bad, why, and what else would do than another driver or version."""


def image_runs_on_the_driver(case: Case) -> Iterator[Diagnostic]:
    """Docker and compose: what the runtime lets through, CUDA may still refuse."""
    driver, cuda, drivers = driver_of(case), _cuda_of_image(case), case.facts.lore.drivers
    known = drivers.knows(driver)
    if not driver or not cuda or case.deploy.target.kind in ("process", "systemd") or not older(known or "0", cuda):
        return
    severity, why, more = _refused(case, driver, cuda) or _let_through(case, cuda, known)
    first = drivers.by_cuda.get(cuda)
    came = f", which came with driver {first}" if first else ""
    fixes = [*more, f"update the driver to {first or 'that of CUDA ' + cuda} or newer", *_others(case, driver, cuda)]
    found = error(
        "DC570",
        "the image's CUDA is newer than the driver",
        f"Driver {driver} {_knows(case, known)}; the image is of CUDA {cuda}{came}. {why}",
        "; or ".join(fixes),
        case.deploy.at("hardware.driver") or case.deploy.at("hardware.gpu"),
    )
    yield replace(found, severity=severity)


def wheel_runs_on_the_driver(case: Case) -> Iterator[Diagnostic]:
    """Processes and units: libraries of one major version of CUDA run on the driver of its first release, and later."""
    driver, cuda, drivers = driver_of(case), case.facts.engine.wheel_cuda, case.facts.lore.drivers
    least = drivers.by_major.get(cuda.partition(".")[0])
    own = case.deploy.engine.python != "auto"  # an environment of the user's: its torch may be of another CUDA
    if not driver or least is None or case.deploy.target.kind not in ("process", "systemd") or own:
        return
    if not older(driver, least):
        return
    library = "compat" in case.deploy.engine.env.get("LD_LIBRARY_PATH", "") or _asked(case)
    fixes = [f"update the driver to {least} or newer", *_others(case, driver, "")]
    if not library:
        why = "The engine does not find the card."
        if not _geforce(case):
            fixes.append(_library_of_ones_own(case, cuda))
    else:
        why = (
            _804(case) if _geforce(case) else "NVIDIA's library for newer CUDA (cuda-compat) mends it, if it is there."
        )
    found = error(
        "DC571",
        "the engine's CUDA needs a newer driver",
        f"Driver {driver} {_knows(case, drivers.knows(driver))}; vLLM {case.facts.engine.version} and its torch are "
        f"built for CUDA {cuda}, of which any version needs driver {least} or newer. {why}",
        "; or ".join(fixes),
        case.deploy.at("hardware.driver") or case.deploy.at("hardware.gpu"),
    )
    yield replace(found, severity=Severity.WARNING if library and not _geforce(case) else Severity.ERROR)


def library_belongs_here(case: Case) -> Iterator[Diagnostic]:
    """The switch for that library where no driver or card has a use for it: CUDA may not begin then."""
    if case.on_cpu or not _asked(case):
        return
    container = case.deploy.target.kind not in ("process", "systemd")
    cuda = _cuda_of_image(case) if container else case.facts.engine.wheel_cuda
    driver = driver_of(case)
    known = case.facts.lore.drivers.knows(driver) if driver else ""
    if _geforce(case):
        severity, why = Severity.ERROR, f"{_named(case)} is a GeForce card, on which CUDA refuses it: error 803 or 804."
    elif cuda and known and not older(known, cuda):
        severity, why = (
            Severity.WARNING,
            f"Driver {driver} knows CUDA {cuda} itself; the library is made for older ones.",
        )
    else:
        return
    found = error(
        "DC572",
        "NVIDIA's library for older drivers has no place here",
        f"{SWITCH} puts NVIDIA's library for newer CUDA on older drivers (cuda-compat) before the driver's own. {why}",
        f"remove engine.env.{SWITCH}",
        case.deploy.at(("engine", "env", SWITCH)),
    )
    yield replace(found, severity=severity)


def driver_of(case: Case) -> str:
    """The host's driver as the file says it, else as NVML did; "" where neither does, and where the CPU serves."""
    return "" if case.on_cpu else case.deploy.hardware.driver or case.facts.smallest.driver


def _cuda_of_image(case: Case) -> str:
    """Of the version's own image, or of one whose tag says it ("-cu129"); "" of others."""
    image = case.deploy.engine.image
    if image is None or image == case.facts.engine.image:
        return case.facts.engine.cuda
    found = re.search(r"[-:]cu(\d\d)(\d)\b", image)
    return f"{found[1]}.{found[2]}" if found else ""


def _refused(case: Case, driver: str, cuda: str) -> Verdict | None:
    """Where NVIDIA's container runtime does not start the container at all."""
    base = case.facts.lore.drivers.base(cuda)
    passing = base.geforce if _geforce(case) else base.branches
    if parts(driver)[0] in passing or case.deploy.engine.env.get(UNCHECKED, "").lower() in ("1", "true"):
        return None
    why = f'NVIDIA\'s container runtime refuses the container: "unsatisfied condition: cuda>={cuda}".'
    if passing:
        why += f" Of older drivers the image lets branches {', '.join(map(str, passing))} start, with NVIDIA's library "
        why += "for newer CUDA."
    elif base.branches:
        why += f" The older branches that the image lets start are not for GeForce cards, and {_named(case)} is one."
    return Severity.ERROR, why, []


def _let_through(case: Case, cuda: str, known: str) -> Verdict:
    """What CUDA says in a container that does start."""
    how = case.facts.engine.cuda_compat
    if how == "always" or _asked(case):
        why = "The image loads NVIDIA's library for newer CUDA on older drivers. "
        if _geforce(case):
            return Severity.ERROR, why + _804(case), []
        return Severity.WARNING, why + "It is made for data-centre cards and the drivers that the image names.", []
    if parts(known)[:1] == parts(cuda)[:1]:
        why = (
            "Within a major version newer CUDA runs on older drivers with fewer features; what is compiled on the card "
        )
        why += 'may be refused: "the provided PTX was compiled with an unsupported toolchain".'
        return Severity.WARNING if _geforce(case) else Severity.NOTE, why, []
    why = f'CUDA {cuda.partition(".")[0]} does not begin on it: "the NVIDIA driver on your system is too old".'
    switch = [f'set engine.env.{SWITCH}: "1"'] if how == "asked" and not _geforce(case) else []
    return Severity.ERROR, why, switch


def _asked(case: Case) -> bool:
    """Whether the file switches the library on, in a version that reads the switch (vllm/env_override.py)."""
    switched = case.deploy.engine.env.get(SWITCH, "0").strip().lower() in ("1", "true")
    return switched and case.facts.engine.cuda_compat == "asked"


def _library_of_ones_own(case: Case, cuda: str) -> str:
    """vllm 0.33, docs/usage/troubleshooting.md; a version without the switch takes the linker's variable."""
    switched = case.facts.engine.cuda_compat == "asked"
    setting = f'{SWITCH}: "1"' if switched else f"LD_LIBRARY_PATH: /usr/local/cuda-{cuda}/compat"
    return f"install cuda-compat-{cuda.replace('.', '-')} and set engine.env.{setting}"


def _804(case: Case) -> str:
    return (
        f"{_named(case)} is a GeForce card: there CUDA answers with error 804, "
        '"forward compatibility was attempted on non supported HW".'
    )


def _others(case: Case, driver: str, cuda: str) -> Iterator[str]:
    """Engine versions and images that the driver runs as it is."""
    drivers = case.facts.lore.drivers
    if found := drivers.image_for(driver):
        yield f"set engine.version to {found[0]} or an older one, made for CUDA {found[1]}"
    for variant in (one for one in drivers.variants if one.of == cuda):
        let = not _geforce(case) and parts(driver)[0] in drivers.base(variant.cuda).branches
        if let or not older(drivers.knows(driver) or "0", variant.cuda):
            yield f"name this version's image of CUDA {variant.cuda} in engine.image (tags with -{variant.tag})"


def _knows(case: Case, known: str) -> str:
    oldest = next(iter(case.facts.lore.drivers.by_cuda), "")
    return f"knows CUDA up to {known}" if known else f"is older than CUDA {oldest}"


def _geforce(case: Case) -> bool:
    return any(card.name in case.facts.lore.drivers.geforce for card in case.facts.devices)


def _named(case: Case) -> str:
    return next(card.name for card in case.facts.devices if card.name in case.facts.lore.drivers.geforce)
