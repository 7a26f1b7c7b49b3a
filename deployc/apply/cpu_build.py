"""The CPU build of vLLM: pinned packages, and two mends that its wheel needs to start and to answer."""

from __future__ import annotations

import email
import re
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from deployc import data
from deployc.apply.engine_env import site_packages
from deployc.diagnostics import Stop, error

_AMX_PERMISSION = """\
# vLLM's CPU attention uses AMX tiles; Linux wants to be asked first: arch_prctl(ARCH_REQ_XCOMP_PERM,
# XFEATURE_XTILEDATA), Documentation/arch/x86/xstate.rst. Where there is no AMX the call fails and changes nothing.
import ctypes, platform; platform.machine() == "x86_64" and ctypes.CDLL(None).syscall(158, 0x1023, 18)
"""


def pins(version: str) -> Mapping[str, Any]:
    """What profiles/engines/cpu.yaml says of a version; Stop where it says nothing."""
    from ruamel.yaml import YAML

    versions: Mapping[str, Mapping[str, Any]] = YAML(typ="safe").load(data.profiles() / "engines" / "cpu.yaml")[
        "versions"
    ]
    if version not in versions:
        detail = f"vllm {version} for the CPU: known are {', '.join(versions)}"
        raise Stop(error("DC623", "The packages of this version are not known", detail, f"--version {[*versions][-1]}"))
    return versions[version]


def install(pins: Mapping[str, Any], prefix: Path, scratch: Path, pip: Callable[..., None]) -> None:
    """Install the pinned build: its requirements less the torch family, our torch, the wheel itself, the mends."""
    pip("download", "--no-deps", "-d", str(scratch), pins["package"])
    (wheel,) = scratch.glob("*.whl")
    listed = scratch / "requirements.txt"
    listed.write_text("\n".join([pins["torch"], *requirements(wheel, pins["left_out"])]) + "\n", encoding="utf-8")
    pip("install", "-r", str(listed))
    pip("install", "--no-deps", str(wheel))
    for packages in site_packages(prefix):
        mend(pins, packages)


def requirements(wheel: Path, left_out: list[str]) -> list[str]:
    """The requirement lines in a wheel's METADATA, markers and all (pip judges those), less some distributions."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        lines = email.message_from_bytes(archive.read(name)).get_all("Requires-Dist") or []
    return [line for line in lines if _name(line) not in left_out]


def mend(pins: Mapping[str, Any], packages: Path) -> None:
    """Make the installed wheel work, as far as its pins say that it does not."""
    if told := pins.get("metadata"):
        (own,) = packages.glob(f"{pins['package'].split('==')[0].replace('-', '_')}-*.dist-info")
        text = (own / "METADATA").read_text(encoding="utf-8")
        text = re.sub(r"^Name: .*$", f"Name: {told['name']}", text, count=1, flags=re.MULTILINE)
        text = re.sub(r"^Version: .*$", f"Version: {told['version']}", text, count=1, flags=re.MULTILINE)
        other = packages / f"{told['name']}-{told['version']}.dist-info"
        other.mkdir(exist_ok=True)
        (other / "METADATA").write_text(text, encoding="utf-8")
        (other / "INSTALLER").write_text("deployc\n", encoding="utf-8")
        (other / "RECORD").write_text("", encoding="utf-8")
    if pins.get("amx_permission"):
        (packages / "deployc_amx_permission.pth").write_text(_AMX_PERMISSION, encoding="utf-8")


def _name(requirement: str) -> str:
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    return re.sub(r"[-_.]+", "-", match[0]).lower() if match else ""
