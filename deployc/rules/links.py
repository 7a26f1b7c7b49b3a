"""How cards reach each other, where that can go wrong without a word."""

from __future__ import annotations

from collections.abc import Iterator

from deployc.cost.parallel import undivided
from deployc.cost.written import written_flag
from deployc.diagnostics import Diagnostic, note, warning
from deployc.rules.case import Case


def peers_may_hang(case: Case) -> Iterator[Diagnostic]:
    """Two cards over PCIe: the engine's own all-reduce is on at exactly two ranks (vllm 0.32, distributed/
    device_communicators/custom_all_reduce.py: more need NVLink), and behind an IOMMU or ACS peers say that they reach
    each other and do not (vllm issue 51513). Of more cards NCCL alone is left."""
    ranks, facts = case.choices.tensor_parallel_size.value, case.facts
    if case.on_cpu or ranks == 1 or facts.smallest.interconnect not in ("pcie", "none"):
        return
    if undivided(facts.model.architecture, ranks):
        return  # which stops it before that
    flag = written_flag(case.deploy, facts, "disable-custom-all-reduce")
    ours = ranks == 2 and not (flag is not None and flag[0] is True)
    nccl = case.deploy.engine.env.get("NCCL_P2P_DISABLE") != "1"
    if not ours and not nccl:
        return
    paths = [*(["its own all-reduce, which is on at two ranks,"] if ours else []), *(["NCCL"] if nccl else [])]
    said = warning if ranks == 2 else note
    wanted = [*(["engine.env: {NCCL_P2P_DISABLE: '1'}"] if nccl else []),
              *(["engine.args: {disable-custom-all-reduce: true}"] if ours else [])]  # fmt: skip
    yield said(
        "DC593",
        "cards without NVLink may wait for each other for ever",
        f"{ranks} cards over PCIe: {' and '.join(paths)} {'copy' if len(paths) > 1 else 'copies'} from card to card. "
        "Where the host's IOMMU or ACS redirects that, the driver still says that they reach each other, and the start "
        "hangs without a message.",
        f"if it hangs: set {' and '.join(wanted)}; or turn ACS and the IOMMU's translation off on the host "
        "(`nvidia-smi topo -m` shows no NV#; `ls /sys/class/iommu` lists one that is on)",
        case.at("tensor-parallel-size", "engine.parallel.tensor"),
    )
