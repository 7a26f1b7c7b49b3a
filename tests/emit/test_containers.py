"""What a container is given: shared memory, places for files, time for its start, caches that it may write."""

from __future__ import annotations

import pytest
from handmade import QWEN_ON_4090, choices, deploy_of, edited, facts, figure, prediction
from ruamel.yaml import YAML

from deployc.emit import compile_bundle
from deployc.emit.paths import in_container
from deployc.emit.timing import timing
from deployc.rules.places import CACHES
from deployc.types.choices import Choice
from deployc.types.figure import Figure


@pytest.mark.parametrize(("cards", "size"), [(1, "1gb"), (2, "8gb"), (4, "8gb"), (16, "16gb")])
def test_ranks_have_shared_memory(cards: int, size: str) -> None:
    """64 MB, what Docker gives, is not enough for NCCL."""
    text = edited(QWEN_ON_4090, {"  gpu: rtx-4090\n": f"  gpu: rtx-4090\n  count: {cards}\n"})
    chosen = choices(tensor_parallel_size=Choice(cards, "search", ""))
    bundle, _ = compile_bundle(deploy_of(text), facts(cards=cards), chosen, prediction())
    assert bundle is not None
    compose = YAML(typ="safe", pure=True).load(bundle.files["compose.yaml"])
    (service,) = compose["services"].values()
    assert service["shm_size"] == size


@pytest.mark.parametrize(
    ("file", "place"),
    [
        ("./a b/$(id).jinja", "/deployc/file_0/__id_.jinja"),
        ("../..", "/deployc/file_0/file"),
        ("./.hidden", "/deployc/file_0/hidden"),
        ("./" + 300 * "x" + ".jinja", "/deployc/file_0/" + 94 * "x" + ".jinja"),
    ],
)
def test_a_file_is_mounted_under_a_plain_name(file: str, place: str) -> None:
    """`..` would put the mount over the folder with the entry script."""
    assert in_container({"DEPLOYC_FILE_0": f"file:{file}"}) == {"DEPLOYC_FILE_0": place}


@pytest.mark.parametrize(
    ("start", "downloads", "seconds"),
    [
        (figure(60, "s", band=0.5), 0, 300),
        (figure(200, "s", band=0.5), 0, 400),
        (figure(200, "s", band=2.0), 0, 600),
        (figure(60, "s", band=0.5), 15_000_000_000, 1620),
        (figure(60, "s", band=0.5), 10**12, 7200),
    ],
)
def test_a_start_has_twice_its_time_and_that_of_the_download(start: Figure, downloads: int, seconds: int) -> None:
    waits = timing(deploy_of(QWEN_ON_4090), prediction(startup_seconds=start), downloads)
    assert waits.start == seconds


def test_every_cache_of_the_image_lies_below_its_volume() -> None:
    bundle, _ = compile_bundle(deploy_of(QWEN_ON_4090), facts(), choices(), prediction())
    assert bundle is not None
    (line,) = [
        line for line in bundle.files["Dockerfile"].replace("\\\n", "").split("\n") if line.startswith("ENV HOME")
    ]
    folders = dict(word.split("=", 1) for word in line.split()[1:])
    assert folders.pop("HOME") == '"/home/deployc"'
    assert set(folders) < set(CACHES)
    assert all(folder.startswith('"/home/deployc/.cache') for folder in folders.values())
    mounts = YAML(typ="safe", pure=True).load(bundle.files["compose.yaml"])["services"]["engine"]["volumes"]
    assert {"type": "volume", "source": "cache", "target": "/home/deployc/.cache"} in mounts


@pytest.mark.parametrize(("port", "may"), [(443, True), (1023, True), (1024, False), (8000, False)])
def test_a_unit_may_listen_on_its_port(port: int, may: bool) -> None:
    bundle, _ = compile_bundle(deploy_of(QWEN_ON_4090 + f"  port: {port}\n"), facts(), choices(), prediction())
    assert bundle is not None
    unit = bundle.files["domain-qa.service"]
    assert ("\nAmbientCapabilities=CAP_NET_BIND_SERVICE\n" in unit) == may
    assert ("\nCapabilityBoundingSet=\n" in unit) == (not may)


def test_a_unit_leaves_the_engine_its_sockets_and_cards() -> None:
    bundle, _ = compile_bundle(deploy_of(QWEN_ON_4090), facts(), choices(), prediction())
    assert bundle is not None
    unit = bundle.files["domain-qa.service"]
    assert "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK\n" in unit
    for blocks in ("IPAddressDeny", "PrivateDevices", "ProtectClock=yes", "MemoryDenyWriteExecute", "PrivateNetwork"):
        assert f"\n{blocks}" not in unit
