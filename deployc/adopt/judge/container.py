"""Containers: cards, shared memory, health checks, restarts, tags, users, times."""

from __future__ import annotations

import re
from collections.abc import Iterator

from deployc.adopt.deploy import CARDS, devices_of
from deployc.adopt.judge.case import Judged, gibibytes, seconds
from deployc.diagnostics import Diagnostic, error, warning
from deployc.types.launch import Piece

LEAST_START = 300
"""Seconds: weights from a disk, compilation and graphs; big models took ten minutes (llm-d-benchmark, issue 83)."""
DEFAULT_INTERVAL, DEFAULT_RETRIES = 30.0, 3
"""Docker's own (docs.docker.com, HEALTHCHECK)."""
LEAST_SHM = 1.0
"""GiB a rank that NCCL and the engine's message queue live with; 64 MiB is Docker's default."""
_DRAIN = 30.0
DEFAULT_GRACE = 10.0
"""Seconds: what `docker stop` and compose wait unless told."""
_OTHER_DEVICES = re.compile(r"rocm|xpu|cpu|tpu|hpu|gaudi|ascend|neuron|arm64-cpu", re.IGNORECASE)
_WRITABLE = ("HOME", "HF_HOME", "XDG_CACHE_HOME")


def one_way_of_counting(case: Judged) -> Iterator[Diagnostic]:
    """`count` and `device_ids` of one reservation exclude each other."""
    for card in case.launch.cards:
        if card.count and card.device_ids:
            yield error(
                "DC711",
                "count and device_ids together",
                f"count: {card.count} and device_ids {', '.join(card.device_ids)} say how many cards and which: Docker "
                "takes one of the two and refuses both.",
                "keep device_ids and remove count"
                if case.launch.source == "compose"
                else "quotes of their own around the devices: --gpus '\"device=0,1\"'",
                card.at,
            )


def a_card_is_reserved(case: Judged) -> Iterator[Diagnostic]:
    """Without a reservation a container sees no card."""
    launch = case.launch
    on_cards = launch.image is not None and not _OTHER_DEVICES.search(launch.image.value)
    nvidia = (launch.runtime is not None and launch.runtime.value == "nvidia") or "NVIDIA_VISIBLE_DEVICES" in launch.env
    if not on_cards or launch.cards or nvidia or launch.source == "dockerfile" or not case.official:
        return
    compose = launch.source == "compose"
    yield error(
        "DC712",
        "the container is given no card",
        "Nothing reserves an NVIDIA card: inside the container there is none, and the engine stops with `Failed to "
        "infer device type`.",
        "deploy.resources.reservations.devices: [{driver: nvidia, count: all, capabilities: [gpu]}]"
        if compose
        else "--gpus all, or --gpus '\"device=0\"'",
        launch.image.at if launch.image else launch.at,
    )


def cards_suffice(case: Judged) -> Iterator[Diagnostic]:
    """Each rank takes a card; a launch that sees fewer does not start."""
    seen = devices_of(case.launch)
    counts = [int(card.count) for card in case.launch.cards if card.count.isdecimal() and not card.device_ids]
    visible = len(seen) if seen else sum(counts) if counts else None
    told_already = any(card.count and card.device_ids for card in case.launch.cards)
    if (
        visible is None
        or visible >= case.ranks
        or told_already
        or any(card.count == "all" for card in case.launch.cards if not seen)
    ):
        return
    where = next((card.at for card in case.launch.cards), case.launch.at)
    variable = next((case.launch.env[name].at for name in CARDS if name in case.launch.env), where)
    yield error(
        "DC720",
        "fewer cards than ranks",
        f"{case.ranks} ranks (tensor x pipeline x data parallel) take a card each, and the launch sees {visible}: the "
        "engine stops while it makes its workers.",
        f"give it {case.ranks} cards, or lower the parallel sizes",
        variable if not case.launch.cards else where,
    )


def shared_memory(case: Judged) -> Iterator[Diagnostic]:
    """Ranks talk through /dev/shm, of which a container has 64 MiB unless told."""
    launch = case.launch
    ranks = case.ranks
    shared = (launch.ipc is not None and launch.ipc.value not in ("", "private", "none")) or _mounts_shm(launch.volumes)
    if launch.image is None or launch.source == "dockerfile" or ranks < 2 or shared:
        return
    size = gibibytes(launch.shm_size.value) if launch.shm_size else 64 / 1024
    if size is None or size >= LEAST_SHM * ranks:
        return
    made = warning if launch.shm_size else error
    yield made(
        "DC713",
        "too little shared memory for several ranks",
        f"{ranks} ranks share {size:.3g} GiB of /dev/shm"
        + (", Docker's default." if not launch.shm_size else ".")
        + f" NCCL and the engine's own queues lie there; {LEAST_SHM * ranks:g} GiB are on the safe side.",
        "ipc: host (--ipc=host), or shm_size: " + f"{max(16, int(LEAST_SHM * ranks))}g",
        launch.shm_size.at if launch.shm_size else launch.at,
    )


def _mounts_shm(volumes: tuple[Piece, ...]) -> bool:
    return any("/dev/shm" in volume.value for volume in volumes)  # noqa: S108


def check_has_its_tool(case: Judged) -> Iterator[Diagnostic]:
    """A health check by a program that the image does not have never succeeds."""
    health = case.launch.health
    if health is None:
        return
    used = re.search(r"\b(curl|wget|nc|http)\b", " ".join(health.words[:3]))
    if used is None or (case.official and used[1] in case.engine.tools):
        return
    where = (
        f"vLLM's own image of {case.engine.facts.version} has {', '.join(case.engine.tools)}"
        if case.official
        else ("this image is not vLLM's own: slim ones lack it")
    )
    made = error if case.official else warning
    yield made(
        "DC714",
        "the health check needs a program of the image",
        f"It runs {used[1]}; {where}. Where it is missing the container stays unhealthy for ever while it serves.",
        """test: ["CMD", "python3", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health')"]""",
        health.at,
    )


def time_to_start(case: Judged) -> Iterator[Diagnostic]:
    """Loading takes minutes; what gives up before that restarts it for ever."""
    health = case.launch.health
    if health is None:
        return
    start = seconds(health.start_period) or 0.0
    retries = health.retries.value if health.retries and health.retries.value.isdecimal() else str(DEFAULT_RETRIES)
    patience = start + int(retries[:6]) * (seconds(health.interval) or DEFAULT_INTERVAL)
    if patience >= LEAST_START:
        return
    yield warning(
        "DC715",
        "too little time to start",
        f"It counts as unhealthy after {patience:g} s: weights have to be read, kernels compiled and graphs captured, "
        "minutes for a large model.",
        f"start_period: {LEAST_START}s at least; deployc takes the predicted start for it",
        (health.start_period or Piece("", health.at)).at,
    )


def restarts_end(case: Judged) -> Iterator[Diagnostic]:
    """A start that fails for good is tried again for ever, the card taken and given back each time."""
    restart = case.launch.restart
    if restart is None or restart.value not in ("always", "unless-stopped", "on-failure", "any"):
        return
    unit = case.launch.unit
    if unit and case.launch.source == "unit" and _unit_gives_up(case):
        return
    yield warning(
        "DC716",
        "restarts without an end",
        f"restart: {restart.value} has no limit: a launch that cannot start (memory, a wrong flag) loops, and its log "
        "hides the first cause.",
        "StartLimitIntervalSec= long enough for StartLimitBurst= starts" if unit else "on-failure:3",
        restart.at,
    )


def _unit_gives_up(case: Judged) -> bool:
    """systemd gives up where `StartLimitBurst` starts fall into `StartLimitIntervalSec` (defaults 5 in 10 s)."""
    unit = case.launch.unit
    interval = unit.get("StartLimitIntervalSec") or unit.get("StartLimitInterval")
    burst = unit["StartLimitBurst"].value if "StartLimitBurst" in unit else "5"
    if interval is None or interval.value.strip() == "0" or not burst.isdecimal():
        return False
    return (seconds(interval) or 0) >= int(burst[:6]) * LEAST_START / 5


def caches_can_be_written(case: Judged) -> Iterator[Diagnostic]:
    """A user other than root has no home in most of these images, and caches go to $HOME/.cache."""
    user, launch = case.launch.user, case.launch
    if user is None or launch.image is None or user.value.split(":")[0] in ("", "0", "root", "vllm", "2000"):
        return
    if any(name in launch.env for name in _WRITABLE):
        return
    ready = f" Its images are made for {case.engine.user}." if case.engine.user and case.official else ""
    yield warning(
        "DC721",
        "caches may not be writable",
        f"User {user.value} has no home of its own in the image, so that HOME is / and the hub's, the compiler's and "
        f"vLLM's caches end in `Permission denied`.{ready}",
        "set HOME and HF_HOME to a mounted folder of that user"
        + (f", or run as {case.engine.user}" if case.engine.user and case.official else ""),
        user.at,
    )


def time_to_finish(case: Judged) -> Iterator[Diagnostic]:
    """KILL before the engine has let its requests finish."""
    launch, drain = case.launch, case.share("shutdown-timeout")
    grace = seconds(launch.grace)
    needed = drain[0] if drain is not None else _DRAIN
    if launch.grace is None and drain is not None and launch.image is not None:
        grace = DEFAULT_GRACE
    if grace is None or grace >= needed:
        return
    why = f"--shutdown-timeout gives requests {needed:g} s" if drain else f"a long answer takes {needed:g} s and more"
    yield warning(
        "DC724",
        "killed before requests end",
        f"TERM is followed by KILL after {grace:g} s; {why}.",
        f"stop_grace_period (--stop-timeout, TimeoutStopSec) of {needed + 10:g}s",
        launch.grace.at if launch.grace is not None else drain[1] if drain is not None else launch.at,
    )
