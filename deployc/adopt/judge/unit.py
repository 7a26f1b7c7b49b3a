"""systemd units: time to start, and hardening that takes away what the engine talks through."""

from __future__ import annotations

from collections.abc import Iterator

from deployc.adopt.judge.case import Judged, seconds
from deployc.adopt.judge.container import LEAST_START
from deployc.diagnostics import Diagnostic, warning
from deployc.types.launch import Piece

DEFAULT_START = 90
"""Seconds: DefaultTimeoutStartSec of systemd-system.conf."""
_LOOPBACK = ("127.0.0.0/8", "localhost", "127.0.0.1")
_ONLY = {
    "MemoryDenyWriteExecute": "compilers of kernels write code and run it",
    "PrivateDevices": "/dev/nvidia* are not there",
    "ProtectHome": "the hub's cache lies in a home, unless HF_HOME names another place",
    "PrivateUsers": "the cards' files belong to users that are not mapped",
}


def start_timeout(case: Judged) -> Iterator[Diagnostic]:
    """Only where systemd waits for the start: notify, oneshot, forking, or an ExecStartPost that waits."""
    unit = case.launch.unit
    if case.launch.source != "unit":
        return
    waits = unit["Type"].value if "Type" in unit else ""
    waiting = waits in ("notify", "notify-reload", "oneshot", "forking", "dbus") or "ExecStartPost" in unit
    written = unit.get("TimeoutStartSec") or unit.get("TimeoutSec")
    limit = seconds(written) if written is not None else DEFAULT_START  # 0 = no limit
    if not waiting or not limit or limit >= LEAST_START:
        return
    place = written or unit.get("ExecStartPost") or unit.get("Type")
    yield warning(
        "DC715",
        "too little time to start",
        f"systemd kills the unit after {limit:g} s{'' if written else ', its default,'} if it is not up by then; "
        "loading a large model takes minutes."
        + (" vLLM sends no READY=1, which Type=notify waits for: use Type=exec." if waits.startswith("notify") else ""),
        f"TimeoutStartSec={LEAST_START} at least, or infinity",
        place.at if place is not None else case.launch.at,
    )


def hardening(case: Judged) -> Iterator[Diagnostic]:
    """The engine's processes talk over unix sockets and the loopback address."""
    unit = case.launch.unit
    if case.launch.source != "unit" or case.launch.image is not None:
        return
    families = unit.get("RestrictAddressFamilies")
    if families is not None and not families.value.startswith("~"):
        given = families.value.split()
        missing = [name for name in ("AF_UNIX", "AF_NETLINK") if name not in given]
        if "AF_UNIX" in missing:
            yield _blocked(
                families, f"RestrictAddressFamilies leaves out {' and '.join(missing)}: the engine's processes talk "
                "through ipc:// sockets, NCCL looks for interfaces through netlink.",
                f"RestrictAddressFamilies={' '.join([*given, *missing])}",
            )  # fmt: skip
    denied, allowed = unit.get("IPAddressDeny"), unit.get("IPAddressAllow")
    if denied is not None and denied.value.split()[:1] == ["any"]:
        given_addresses = allowed.value.split() if allowed is not None else []
        if not any(address in _LOOPBACK for address in given_addresses):
            yield _blocked(
                denied, "IPAddressDeny=any without the loopback address: the engine's processes meet on 127.0.0.1.",
                "IPAddressAllow=localhost, and the networks that clients come from",
            )  # fmt: skip
    for name, why in _ONLY.items():
        setting = unit.get(name)
        if setting is not None and setting.value.lower() in ("yes", "true", "1", "on") and not _elsewhere(name, case):
            yield _blocked(setting, f"{name}: {why}.", f"remove {name}")


def _elsewhere(name: str, case: Judged) -> bool:
    return name == "ProtectHome" and ("HF_HOME" in case.launch.env or "CacheDirectory" in case.launch.unit)


def _blocked(setting: Piece, why: str, fix: str) -> Diagnostic:
    return warning("DC722", "hardening takes away what the engine needs", why, fix, setting.at)
