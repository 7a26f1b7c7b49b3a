"""Names of cards as deploy.yaml has them -> facts: profiles, custom cards, the host's memory, or NVML.

In: `hardware`. Out: one GpuFacts a card of the deployment. A name that is not known is an error, never the nearest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING

from deployc.diagnostics import Diagnostic, ExitCode, Report, Span, Stop, error, warning
from deployc.facts import gpu_profile
from deployc.types.facts import GpuFacts, Spec

if TYPE_CHECKING:
    from deployc.spec.deploy import Deploy
    from deployc.spec.model import CustomGpu

_OTHER_MAKERS = {
    "AMD": r"amd.*|radeon.*|instinct.*|mi\d{2,3}[a-z]*|rx\d{4}.*|gfx\d+.*",
    "Intel": r"intel.*|gaudi.*|hl\d{3}.*|arc.*|(datacenter)?(gpu)?max1\d{3}",
    "Huawei Ascend": r"huawei.*|ascend.*|昇腾.*|升腾.*|atlas.*|910[abc]\d?|310p\d?",
    "Moore Threads": r"moore.*|mtt.*|musa.*|摩尔线程.*|s4000|s5000",
    "Apple": r"apple.*|mps|metal|m[1-9](pro|max|ultra)?",
    "Cambricon": r"cambricon.*|mlu.*|寒武纪.*",
    "Hygon": r"hygon.*|dcu.*|海光.*",
    "MetaX": r"metax.*|沐曦.*",
    "Iluvatar": r"iluvatar.*|天数.*",
    "Kunlunxin": r"kunlun.*|昆仑.*",
    "Google": r"google.*|tpu.*",
    "AWS": r"inferentia.*|trainium.*|inf[12]|trn[12]",
}
"""By maker, what its cards are called, in `gpu_profile.normal` form."""


def devices(deploy: Deploy, env: Mapping[str, str]) -> tuple[tuple[GpuFacts, ...] | None, Report]:
    """One entry a card, or None with errors (DC660-DC669).

    `count` repeats one name; a list has one entry a card; `hardware.interconnect` overrides the profile's. `env` is
    looked at for `auto` alone: CUDA_VISIBLE_DEVICES.
    """
    hardware, report = deploy.hardware, Report(list(_slices(deploy)))
    if report.errors:
        return None, report
    try:
        if hardware.gpu == "auto":
            from deployc.facts.nvml import cards

            return cards(deploy, env, report), report
        if isinstance(hardware.gpu, list):
            entries = [(gpu, f"hardware.gpu.{index}") for index, gpu in enumerate(hardware.gpu)]
        else:
            entries = [(hardware.gpu, "hardware.gpu")]
        found = [_device(deploy, gpu, key, report) for gpu, key in entries]
    except Stop as stop:
        report.extend(stop.report)
        return None, report
    known = tuple(card for card in found if card is not None)
    if report.errors or len(known) < len(found):
        return None, report
    return known if isinstance(hardware.gpu, list) else known * hardware.count, report


def names() -> tuple[str, ...]:
    """Every profile, by its canonical name."""
    return tuple(sorted(gpu_profile.names()))


def profile(written: str) -> GpuFacts:
    """The card of that name or other spelling, as its profile has it. Raises Stop (DC660, DC661, DC662, DC669)."""
    report = Report()
    name = named(written, None, report)
    if name is None:
        raise Stop(report, ExitCode.USAGE)
    return gpu_profile.load(name).facts("auto")


def sliced(detail: str, at: Span | None) -> Diagnostic:
    """DC665: a profile and NVML describe whole cards."""
    fix = "Switch MIG off (`nvidia-smi -mig 0`), or describe the slice: gpu: {memory: 10GiB, bandwidth: 250GB/s}."
    return error("DC665", "a slice of a card has no profile", detail, fix, at)


def _slices(deploy: Deploy) -> Iterator[Diagnostic]:
    """A MIG device under anything but a custom card: its memory and speed are not those of the whole."""
    gpu = deploy.hardware.gpu
    for index, device in enumerate(deploy.hardware.devices or []):
        of = gpu[index] if isinstance(gpu, list) and index < len(gpu) else gpu
        if isinstance(of, str) and str(device).startswith("MIG-"):
            detail = f"{device} is a MIG slice; gpu: {of} has the memory, bandwidth and compute of whole cards."
            yield sliced(detail, deploy.at(f"hardware.devices.{index}"))


def _device(deploy: Deploy, gpu: str | CustomGpu, key: str, report: Report) -> GpuFacts | None:
    if not isinstance(gpu, str):
        return _custom(deploy, gpu, key, report)
    if gpu == "cpu" and key == "hardware.gpu":
        return _cpu(deploy, report)
    name = named(gpu, deploy.at(key), report)
    return None if name is None else linked(deploy, gpu_profile.load(name), "auto", report)


def named(written: str, at: Span | None, report: Report) -> str | None:
    """The profile that a name means; else DC660 (unknown), DC661 (ambiguous) or DC662 (another maker's)."""
    candidates = gpu_profile.find(written)
    if len(candidates) == 1:
        return candidates[0]
    report.add(_no_profile(written, candidates, at))
    return None


def linked(deploy: Deploy, profile: gpu_profile.Profile, seen: str, report: Report) -> GpuFacts | None:
    """The card under `hardware.interconnect`, else under the link that was seen; DC668 where it cannot have that."""
    wanted = deploy.hardware.interconnect if deploy.hardware.interconnect != "auto" else seen
    if wanted == "auto" or wanted in profile.links:
        return profile.facts(wanted)
    detail = f"{profile.name} has no {wanted}; its cards are joined by {' or '.join(profile.links)}."
    fix = "Write `interconnect: auto`, or name the card that it is."
    report.add(error("DC668", "the card cannot have this", detail, fix, deploy.at("hardware.interconnect")))
    return None


def _custom(deploy: Deploy, gpu: CustomGpu, key: str, report: Report) -> GpuFacts | None:
    """A card whose figures the user gives; what is not given stays unknown."""
    capability = _capability(gpu, key, deploy, report)
    if min(gpu.memory, gpu.bandwidth) <= 0:
        detail = f"{key}: memory {gpu.memory} B and bandwidth {gpu.bandwidth:g} B/s must be more than nothing."
        fix = "Take what nvidia-smi and the datasheet say."
        report.add(error("DC668", "the card cannot have this", detail, fix, deploy.at(key)))
    given = gpu.flops.model_dump() if gpu.flops else {}
    wanted = deploy.hardware.interconnect
    return GpuFacts(
        name="custom",
        memory=_own(gpu.memory, deploy, f"{key}.memory"),
        bandwidth=_own(gpu.bandwidth, deploy, f"{key}.bandwidth"),
        compute_capability=capability,
        flops={kind: _own(value, deploy, f"{key}.flops.{kind}") for kind, value in given.items() if value},
        interconnect=wanted if wanted != "auto" else gpu.interconnect or "unknown",
    )


def _own(value: float, deploy: Deploy, key: str) -> Spec:
    return Spec(float(value), deploy.because(key), "user")


def _capability(gpu: CustomGpu, key: str, deploy: Deploy, report: Report) -> tuple[int, int] | None:
    if gpu.compute_capability is None:
        return None
    match = re.fullmatch(r"(\d{1,2})\.(\d)", str(gpu.compute_capability))
    if match:
        return int(match[1]), int(match[2])
    detail = f"{gpu.compute_capability!r} is no compute capability."
    at = deploy.at(f"{key}.compute_capability")
    report.add(error("DC668", "the card cannot have this", detail, 'Write it as "8.9".', at))
    return None


def _cpu(deploy: Deploy, report: Report) -> GpuFacts | None:
    """The CPU with the host memory that the engine may take: stated, else that of this host with a warning."""
    from deployc.facts.host_memory import host_memory

    at = deploy.at("hardware.gpu")
    if stated := deploy.hardware.host_memory:
        return _host(_own(stated, deploy, "hardware.host_memory"))
    found = host_memory()
    if found is None:
        detail = "gpu: cpu takes host memory, and this system does not say how much it has."
        report.add(error("DC666", "a figure of the card is not known", detail, "Write hardware.host_memory.", at))
        return None
    size, where = found
    detail = f"Host memory is {size / 2**30:.1f} GiB by {where} of the machine that plans."
    fix = "Write hardware.host_memory: the plan is then the same everywhere."
    report.add(warning("DC667", "the plan depends on this machine", detail, fix, at))
    return _host(Spec(float(size), where, "host"))


def _host(memory: Spec) -> GpuFacts:
    return GpuFacts("cpu", memory, None, None, {}, interconnect="none", vendor="cpu")


def _no_profile(written: str, candidates: list[str], at: Span | None) -> Diagnostic:
    name = gpu_profile.normal(written)
    if written in ("auto", "cpu"):
        fix = f"Write `gpu: {written}` alone, or name every card's profile."
        return error("DC660", "no profile of this GPU", f"{written} stands alone, not in a list of cards.", fix, at)
    if candidates:
        detail = f"{written!r} may be {', '.join(candidates)}; they differ in memory, bandwidth or speed."
        return error("DC661", "this name means several cards", detail, f"Write one of: {', '.join(candidates)}.", at)
    for maker, pattern in _OTHER_MAKERS.items():
        if re.fullmatch(pattern, name):
            detail = f"{written!r} is of {maker}; profiles and cost model know NVIDIA cards and the CPU."
            fix = "Name an NVIDIA card, or `cpu`."
            return error("DC662", "GPUs of this maker are not supported yet", detail, fix, at)
    known = ", ".join(sorted(gpu_profile.names()))
    detail = f"{written!r:.80} is no card that deployc knows. Known: {known}; auto and cpu."
    fix = next((f"Did you mean {close}? " for close in _close(name)), "")
    fix += "Or give its figures: gpu: {memory: 24GiB, bandwidth: 1008GB/s}."
    return error("DC660", "no profile of this GPU", detail, fix, at)


def _close(name: str) -> Iterator[str]:
    spellings = gpu_profile.spellings()
    for close in get_close_matches(name, spellings, 1, 0.6):
        yield " or ".join(spellings[close])
