"""`gpu: auto`: the cards of this machine as NVML shows them, completed by their profiles.

Memory, compute capability and links are NVML's; bandwidth and compute are the profile's, as NVML does not give them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from deployc.diagnostics import Diagnostic, Report, error, warning
from deployc.facts import gpu_profile
from deployc.types.facts import GpuFacts, Spec

if TYPE_CHECKING:
    from deployc.spec.deploy import Deploy

_NEAR = 0.10
"""Cards of one name differ in memory by half and more; CUDA and NVML differ by under 3 %, ECC takes up to 7 %."""


def cards(deploy: Deploy, env: Mapping[str, str], report: Report) -> tuple[GpuFacts, ...] | None:
    """The cards in `hardware.devices`, else the first `count`, by PCI bus; None with errors (DC663-DC668)."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as wrong:
        report.add(_unasked(deploy, pynvml, wrong))
        return None
    try:
        found = [_card(deploy, pynvml, handle, report) for handle in _handles(deploy, pynvml, report)]
    except pynvml.NVMLError as wrong:
        report.add(_unasked(deploy, pynvml, wrong))
        return None
    finally:
        pynvml.nvmlShutdown()
    known = tuple(card for card in found if card is not None)
    if report.errors or len(known) < len(found):
        return None
    _say_visible(deploy, env, report)
    return known


def count() -> int:
    """The cards of this machine; 0 where NVML cannot be asked."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return 0
    try:
        return int(pynvml.nvmlDeviceGetCount())
    except pynvml.NVMLError:
        return 0
    finally:
        pynvml.nvmlShutdown()


def _handles(deploy: Deploy, nvml: Any, report: Report) -> list[Any]:
    """A handle a card; DC664 for every one that is not there."""
    here = nvml.nvmlDeviceGetCount()
    written = deploy.hardware.devices
    if written is None:
        wanted: list[int | str] = list(range(deploy.hardware.count))
        if here < deploy.hardware.count:
            detail = f"NVIDIA cards in this machine: {here}; hardware.count is {deploy.hardware.count}."
            fix = "Lower the count, or name the card's profile to plan for another machine."
            report.add(error("DC664", "a card is not there", detail, fix, deploy.at("hardware.count")))
            return []
    else:
        wanted = list(written)
    handles: list[Any] = []
    for index, device in enumerate(wanted):
        handle = _handle(nvml, device, here)
        if handle is None:
            have = f"they are numbered 0 to {here - 1}" if here else "there is none"
            detail = f"{device!r} is no card of this machine; {have}."
            fix = "`nvidia-smi -L` lists indices and UUIDs."
            report.add(error("DC664", "a card is not there", detail, fix, deploy.at(f"hardware.devices.{index}")))
        else:
            handles.append(handle)
    return handles


def _handle(nvml: Any, device: int | str, here: int) -> Any | None:
    if isinstance(device, str) and device.isdecimal():
        device = int(device)
    try:
        if isinstance(device, int):
            return nvml.nvmlDeviceGetHandleByIndex(device) if device < here else None
        return nvml.nvmlDeviceGetHandleByUUID(device)
    except (nvml.NVMLError_NotFound, nvml.NVMLError_InvalidArgument):
        return None


def _card(deploy: Deploy, nvml: Any, handle: Any, report: Report) -> GpuFacts | None:
    from deployc.facts.gpu import linked, sliced

    at = deploy.at("hardware.gpu")
    reported = _text(nvml.nvmlDeviceGetName(handle))
    if _in_mig_mode(nvml, handle):
        report.add(sliced(f"{reported} is in MIG mode; NVML's figures are those of the whole card.", at))
        return None
    total, used = _memory(nvml, handle)
    name = _nearest(reported, total)
    if name is None:
        detail = (
            f"{reported} with {total / 2**30:.2f} GiB has no profile, and NVML gives neither bandwidth nor compute."
        )
        fix = f"Give them: gpu: {{memory: {total // 2**20}MiB, bandwidth: …GB/s}}; the datasheet has the bandwidth."
        report.add(error("DC666", "a figure of the card is not known", detail, fix, at))
        return None
    card = linked(deploy, gpu_profile.load(name), _link(nvml, handle, name), report)
    if card is None:
        return None
    capability = nvml.nvmlDeviceGetCudaComputeCapability(handle)
    memory = Spec(float(total), f"NVML: {reported}, total less reserved", "nvml")
    driver = _text(nvml.nvmlSystemGetDriverVersion())
    return replace(card, memory=memory, compute_capability=(capability[0], capability[1]), used=used, driver=driver)


def _memory(nvml: Any, handle: Any) -> tuple[int, int]:
    """Bytes that CUDA shows, and bytes that others hold. What the driver reserves is in NVML's total, not in CUDA's."""
    try:
        told = nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2)
    except (nvml.NVMLError_FunctionNotFound, nvml.NVMLError_NotSupported, nvml.NVMLError_ArgumentVersionMismatch):
        told = nvml.nvmlDeviceGetMemoryInfo(handle)  # a driver before 510: reserved is counted as used
        return int(told.total), int(told.used)
    return int(told.total - told.reserved), int(told.used)


def _nearest(reported: str, total: int) -> str | None:
    """The profile of that name whose memory is the card's: an RTX 4090 that shows 48 GB is a modified one."""
    for name in gpu_profile.of_nvml(reported):
        memory = gpu_profile.load(name).figures["memory"].value
        if abs(total - memory) <= _NEAR * memory:
            return name
    return None


def _in_mig_mode(nvml: Any, handle: Any) -> bool:
    try:
        return bool(nvml.nvmlDeviceGetMigMode(handle)[0])
    except (nvml.NVMLError_NotSupported, nvml.NVMLError_FunctionNotFound):
        return False


def _link(nvml: Any, handle: Any, name: str) -> str:
    """ "nvlink" where a link of the card is up, "pcie" where all are down, "auto" where NVML cannot say."""
    if "nvlink" not in gpu_profile.load(name).links:
        return "auto"
    up: list[bool] = []
    try:
        for link in range(nvml.NVML_NVLINK_MAX_LINKS):
            up.append(bool(nvml.nvmlDeviceGetNvLinkState(handle, link)))
    except nvml.NVMLError_InvalidArgument:
        pass  # past the card's last link
    except (nvml.NVMLError_NotSupported, nvml.NVMLError_FunctionNotFound):
        return "auto"  # a virtual machine that is given one card of several does not see its links
    if not up:
        return "auto"
    return "nvlink" if any(up) else "pcie"


def _unasked(deploy: Deploy, nvml: Any, wrong: Exception) -> Diagnostic:
    value = getattr(wrong, "value", None)
    name = "Name the card's profile in hardware.gpu to plan for another machine."
    if value in (nvml.NVML_ERROR_LIBRARY_NOT_FOUND, nvml.NVML_ERROR_DRIVER_NOT_LOADED):
        detail, fix = f"gpu: auto asks NVIDIA's driver, and there is none here ({wrong}).", name
    elif value == nvml.NVML_ERROR_NO_PERMISSION:
        detail = f"gpu: auto may not ask the driver ({wrong})."
        fix = "Give this user read and write access to /dev/nvidia* (in a container: --gpus all)."
    elif value == nvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH:
        detail = f"gpu: auto: the driver was updated and the old one still runs ({wrong})."
        fix = "Reboot, or load the new kernel module."
    else:
        detail, fix = f"gpu: auto: the driver answers {wrong}.", f"See what `nvidia-smi` says. {name}"
    return error("DC663", "the cards cannot be asked", detail, fix, deploy.at("hardware.gpu"))


def _say_visible(deploy: Deploy, env: Mapping[str, str], report: Report) -> None:
    """Under a scheduler only some cards are ours: say that the file does not follow it."""
    visible = env.get("CUDA_VISIBLE_DEVICES")
    if visible is None or deploy.hardware.devices is not None:
        return
    first = ", ".join(str(index) for index in range(deploy.hardware.count))
    if visible.replace(" ", "") == first.replace(" ", ""):
        return
    detail = f"CUDA_VISIBLE_DEVICES is {visible!r} here and is not followed: the cards are the first ones, {first}."
    fix = "Write the cards that are meant in hardware.devices."
    report.add(warning("DC667", "the plan depends on this machine", detail, fix, deploy.at("hardware.gpu")))


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
