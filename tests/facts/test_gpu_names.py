"""hardware.gpu -> cards: names and other spellings, lists, custom cards, the CPU, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from handmade import QWEN_ON_4090, deploy_of

from deployc.diagnostics import Diagnostic, Severity, Stop
from deployc.facts import gpu, host_memory
from deployc.facts.gpu import devices
from deployc.types.facts import GpuFacts, Spec

GIB = 2**30


def asked(hardware: str) -> tuple[tuple[GpuFacts, ...] | None, list[Diagnostic]]:
    """The cards for a `hardware` section written in flow style, and what was said."""
    deploy = deploy_of(QWEN_ON_4090.replace("hardware:\n  gpu: rtx-4090\n", f"hardware: {{{hardware}}}\n"))
    cards, report = devices(deploy, {})
    return cards, list(report)


def card(hardware: str) -> GpuFacts:
    cards, said = asked(hardware)
    assert cards is not None and not said, said
    assert len(set(map(id, cards))) == 1
    return cards[0]


def refused(hardware: str, code: str) -> Diagnostic:
    cards, said = asked(hardware)
    assert cards is None
    assert [d.code for d in said] == [code]
    assert said[0].severity is Severity.ERROR and said[0].detail and said[0].fix and said[0].at
    return said[0]


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("rtx-4090", "rtx-4090"),
        ("RTX 4090", "rtx-4090"),
        ("'4090'", "rtx-4090"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090"),
        ("geforce-rtx-4090", "rtx-4090"),
        ("ＲＴＸ４０９０", "rtx-4090"),
        ("rtx4090", "rtx-4090"),
        ("RTX_4090 24GB", "rtx-4090"),
        ("4090D", "rtx-4090d"),
        ("NVIDIA GeForce RTX 4090 D", "rtx-4090d"),
        ("4090 48G", "rtx-4090-48g"),
        ("RTX 4090D 48GiB", "rtx-4090d-48g"),
        ("A100 80GB", "a100-80"),
        ("NVIDIA A100-SXM4-80GB", "a100-80"),
        ("NVIDIA A100 80GB PCIe", "a100-80-pcie"),
        ("H100 80GB HBM3", "h100-sxm"),
        ("H200", "h200-sxm"),
        ("Tesla T4", "t4"),
        ("A10G", "a10g"),
        ("A6000", "rtx-a6000"),
        ("RTX PRO 6000", "rtx-pro-6000"),
    ],
)
def test_other_spellings_are_taken_and_shown_canonically(written: str, name: str) -> None:
    assert card(f"gpu: {written}").name == name


@pytest.mark.parametrize(
    ("written", "candidates"),
    [("a100", "a100-40, a100-40-pcie, a100-80, a100-80-pcie"), ("H100", "h100-nvl, h100-pcie, h100-sxm"),
     ("V100", "v100-16, v100-16-pcie, v100-32, v100-32-pcie"), ("RTX 6000", "rtx-6000-ada, rtx-a6000, rtx-pro-6000")],
)  # fmt: skip
def test_a_family_is_no_card(written: str, candidates: str) -> None:
    assert candidates in refused(f"gpu: {written}", "DC661").detail


@pytest.mark.parametrize(
    ("written", "maker"),
    [
        ("mi300x", "AMD"),
        ("AMD Instinct MI250", "AMD"),
        ("rx-7900-xtx", "AMD"),
        ("gaudi", "Intel"),
        ("Gaudi 3", "Intel"),
        ("arc-b580", "Intel"),
        ("ascend-910b", "Huawei Ascend"),
        ("昇腾", "Huawei Ascend"),
        ("910B3", "Huawei Ascend"),
        ("mtt-s4000", "Moore Threads"),
        ("摩尔线程 S4000", "Moore Threads"),
        ("m3", "Apple"),
        ("Apple M2 Ultra", "Apple"),
        ("MLU370", "Cambricon"),
        ("海光DCU", "Hygon"),
        ("tpu-v5e", "Google"),
    ],
)
def test_other_makers_are_not_supported_yet(written: str, maker: str) -> None:
    said = refused(f"gpu: {written}", "DC662")
    assert maker in said.detail
    assert "not supported yet" in said.summary


@pytest.mark.parametrize(
    ("written", "close"),
    [("rtx-4080", "rtx-4090"), ("rxt-4090", "rtx-4090"), ("h200-smx", "h200-sxm"), ("a100-8", "a100-80"),
     ("zzz", ""), ("''", ""), ("'80'", "")],
)  # fmt: skip
def test_an_unknown_card_is_an_error_with_the_list(written: str, close: str) -> None:
    said = refused(f"gpu: {written}", "DC660")
    assert "rtx-5090" in said.detail
    assert (f"Did you mean {close}?" in said.fix) if close else ("Did you mean" not in said.fix)


def test_profiles_by_name_for_whoever_lists_them() -> None:
    assert [gpu.profile(name).name for name in gpu.names()] == list(gpu.names())
    assert gpu.profile("RTX 4090") == card("gpu: rtx-4090")
    for unknown, code in (("rtx-4080", "DC660"), ("h100", "DC661"), ("m3", "DC662")):
        with pytest.raises(Stop, match=code):
            gpu.profile(unknown)


def test_count_repeats_a_card() -> None:
    cards, _ = asked("gpu: rtx-4090d, count: 4")
    assert cards is not None
    assert [c.name for c in cards] == ["rtx-4090d"] * 4


def test_a_list_has_one_entry_a_card_and_all_that_is_wrong_is_said() -> None:
    cards, _ = asked("gpu: [rtx-3090, {memory: 8GiB, bandwidth: 448GB/s}, RTX 3070]")
    assert cards is not None
    assert [c.name for c in cards] == ["rtx-3090", "custom", "rtx-3070"]
    cards, said = asked("gpu: [rtx-3090, mi300x, nonsense, cpu, a100]")
    assert cards is None
    assert [d.code for d in said] == ["DC662", "DC660", "DC660", "DC661"]
    assert len({str(d.at) for d in said}) == 4


def test_a_profile_gives_all_figures() -> None:
    found = card("gpu: a100-80")
    assert found.bandwidth is not None and found.interconnect_bandwidth is not None
    assert found.bandwidth.value == 2039e9
    assert found.compute_capability == (8, 0)
    assert set(found.flops) == {"bf16", "fp16", "int8"}
    assert (found.interconnect, found.interconnect_bandwidth.value) == ("nvlink", 300e9)
    assert (found.vendor, found.used) == ("nvidia", 0)


def test_the_stated_interconnect_overrides_the_profile() -> None:
    bridged, plain = card("gpu: rtx-3090, interconnect: nvlink"), card("gpu: rtx-3090")
    assert (bridged.interconnect, plain.interconnect) == ("nvlink", "pcie")
    assert bridged.interconnect_bandwidth is not None and plain.interconnect_bandwidth is not None
    assert (bridged.interconnect_bandwidth.value, plain.interconnect_bandwidth.value) == (56.25e9, 31.5e9)
    assert card("gpu: h100-sxm, interconnect: pcie").interconnect == "pcie"


def test_a_card_without_nvlink_cannot_be_said_to_have_it() -> None:
    assert "rtx-4090 has no nvlink" in refused("gpu: rtx-4090, count: 2, interconnect: nvlink", "DC668").detail


def test_a_custom_card_keeps_what_is_not_given_unknown() -> None:
    bare = card("gpu: {memory: 24GiB, bandwidth: 1008GB/s}")
    assert bare == GpuFacts(
        "custom", Spec(24 * GIB, "deploy.yaml:8", "user"), Spec(1008e9, "deploy.yaml:8", "user"), None, {}, "unknown"
    )
    full = card(
        'gpu: {memory: 24GiB, bandwidth: 1008GB/s, compute_capability: "12.0", interconnect: pcie, '
        "flops: {bf16: 165TFLOPS, fp8: 330TFLOPS}}"
    )
    assert (full.compute_capability, full.interconnect) == ((12, 0), "pcie")
    assert {kind: spec.value for kind, spec in full.flops.items()} == {"bf16": 165e12, "fp8": 330e12}


@pytest.mark.parametrize("capability", ["'sm_89'", "'8'", "89.0.1", "'eight'"])
def test_a_compute_capability_that_is_none(capability: str) -> None:
    refused(f"gpu: {{memory: 24GiB, bandwidth: 1TB/s, compute_capability: {capability}}}", "DC668")


@pytest.mark.parametrize("figures", ["memory: 0, bandwidth: 1TB/s", "memory: 24GiB, bandwidth: 0GB/s"])
def test_a_custom_card_of_nothing(figures: str) -> None:
    refused(f"gpu: {{{figures}}}", "DC668")


def test_a_mig_slice_has_no_profile_but_may_be_described() -> None:
    assert "MIG-1" in refused("gpu: a100-80, devices: [MIG-1]", "DC665").detail
    refused("gpu: auto, devices: [MIG-1]", "DC665")
    assert card("gpu: {memory: 9.5GiB, bandwidth: 250GB/s}, devices: [MIG-1]").name == "custom"


def test_the_cpu_takes_the_stated_host_memory() -> None:
    found = card("gpu: cpu, host_memory: 8GiB")
    assert (found.name, found.memory.value, found.memory.basis) == ("cpu", 8 * GIB, "user")
    assert (found.bandwidth, found.compute_capability, found.interconnect) == (None, None, "none")


def test_without_it_the_cpu_takes_this_hosts_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_memory, "host_memory", lambda: (3 * GIB, "the cgroup's limit"))
    cards, said = asked("gpu: cpu")
    assert cards is not None
    assert (cards[0].memory.value, cards[0].memory.basis) == (3 * GIB, "host")
    assert [(d.code, d.severity) for d in said] == [("DC667", Severity.WARNING)]
    assert "3.0 GiB by the cgroup's limit" in said[0].detail


def test_a_host_that_does_not_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_memory, "host_memory", lambda: None)
    assert "host_memory" in refused("gpu: cpu", "DC666").fix


def proc(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_host_memory_is_the_lowest_of_memtotal_and_the_cgroups_above(tmp_path: Path) -> None:
    total = {"proc/meminfo": "MemTotal:       24576000 kB\nMemFree: 1 kB\n"}
    assert host_memory.host_memory(proc(tmp_path / "bare", total)) == (24576000 * 1024, "MemTotal in /proc/meminfo")
    second = proc(
        tmp_path / "v2",
        {**total, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n",
         "sys/fs/cgroup/a/memory.max": "4294967296\n"},
    )  # fmt: skip
    assert host_memory.host_memory(second) == (4 * GIB, "the cgroup's limit in /sys/fs/cgroup/a/memory.max")
    first = proc(
        tmp_path / "v1",
        {**total, "proc/self/cgroup": "4:cpu,memory:/x:y\n0::/\n",
         "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
         "sys/fs/cgroup/memory/x:y/memory.limit_in_bytes": "2147483648\n"},
    )  # fmt: skip
    found = host_memory.host_memory(first)
    assert found is not None and found[0] == 2 * GIB
    assert host_memory.host_memory(tmp_path / "none") is None
