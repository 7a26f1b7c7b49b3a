"""Weights from hubs: huggingface_hub's downloader and ModelScope's ranges, against servers with their protocols."""

from __future__ import annotations

import hashlib
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
from adapted import Small
from loopback import COMMIT, Files, HubServer, ModelScopeServer, Reply, serving

from deployc.build import hub
from deployc.build.hub import fetch
from deployc.diagnostics import Stop
from deployc.facts.opening import Access
from deployc.facts.web import Patience
from deployc.types.manifest import Progress

NAME = "org/small"
RIGHT = "hf_right"
HASTY = Patience(timeout=2.0, whole=10.0, attempts=2, pause=0.01)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """A model in two shards, and weights in another layout that must not be fetched."""
    (tmp_path / "made").mkdir()
    small = Small(tmp_path / "made").model(shards=2)
    content = {path.name: path.read_bytes() for path in (small.root / "model").iterdir()}
    return content | {"consolidated.safetensors": b"another layout"}


@pytest.fixture(params=["huggingface", "modelscope"])
def server(request: pytest.FixtureRequest, files: Files) -> Iterator[HubServer | ModelScopeServer]:
    made = (HubServer if request.param == "huggingface" else ModelScopeServer)({NAME: files}, token=RIGHT)
    with serving(made):
        yield made


def access(server: HubServer | ModelScopeServer, token: str = RIGHT) -> Access:
    return Access("huggingface" if isinstance(server, HubServer) else "modelscope", server.url, token, HASTY)


def pins(files: Files) -> dict[str, str]:
    return {name: f"sha256:{hashlib.sha256(body).hexdigest()}" for name, body in files.items() if name != "README.md"}


def fetched(
    server: HubServer | ModelScopeServer, files: Files, store: Path, told: list[Progress] | None = None
) -> Path:
    return fetch(NAME, COMMIT, pins(files), access(server), store, (told if told is not None else []).append)


def codes(stop: pytest.ExceptionInfo[Stop]) -> list[str]:
    return [d.code for d in stop.value.report]


def test_the_pinned_files_come_and_no_others(
    server: HubServer | ModelScopeServer, files: Files, tmp_path: Path
) -> None:
    told: list[Progress] = []
    folder = fetched(server, files, tmp_path / "store", told)
    came = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    came.pop(".gitignore", None)
    assert came == {n: b for n, b in files.items() if n not in ("README.md", "consolidated.safetensors")}
    assert folder.is_relative_to(tmp_path / "store" / "sources")
    assert server.sent_of("consolidated") == 0
    assert {p.phase for p in told} == {"download"}
    assert told[-1].done == told[-1].total > 0
    assert not any("hf_right" in str(p) for p in told)


def test_what_is_there_needs_no_network(server: HubServer | ModelScopeServer, files: Files, tmp_path: Path) -> None:
    folder = fetched(server, files, tmp_path)
    asked = len(server.seen)
    assert fetched(server, files, tmp_path) == folder
    assert len(server.seen) == asked


def test_a_file_that_is_missing_again_comes_alone(
    server: HubServer | ModelScopeServer, files: Files, tmp_path: Path
) -> None:
    folder = fetched(server, files, tmp_path)
    gone = "model-00002-of-00002.safetensors"
    (folder / gone).unlink()
    before = server.sent_of("model-00001")
    assert (fetched(server, files, tmp_path) / gone).read_bytes() == files[gone]
    assert server.sent_of("model-00001") == before


def test_a_cut_connection_is_gone_on_with(files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ModelScope: ranges of a file that came stay, the one that was cut is asked for again."""
    monkeypatch.setattr(hub, "RANGE", 40_000)
    shard = "model-00001-of-00002.safetensors"
    with serving(server := ModelScopeServer({NAME: files}, token=RIGHT)):
        server.faults[f"FilePath={shard}"] = [Reply(503), Reply(503)]
        with pytest.raises(Stop) as stop:
            fetched(server, files, tmp_path)
        assert codes(stop) == ["DC217"]
        (tmp_path / "sources/modelscope" / NAME / COMMIT / f".{shard}.partial").write_bytes(files[shard][:40_000])
        sent = server.sent_of(shard)
        assert (fetched(server, files, tmp_path) / shard).read_bytes() == files[shard]
        assert server.sent_of(shard) - sent == len(files[shard]) - 40_000


def test_other_content_than_was_pinned(server: HubServer | ModelScopeServer, files: Files, tmp_path: Path) -> None:
    wanted = pins(files) | {"tokenizer.json": f"sha256:{'0' * 64}"}
    with pytest.raises(Stop) as stop:
        fetch(NAME, COMMIT, wanted, access(server), tmp_path / "store", lambda _: None)
    assert codes(stop) == ["DC277"]
    assert "tokenizer.json" in stop.value.report.diagnostics[0].detail
    assert not list((tmp_path / "store").rglob("tokenizer.json"))


def test_git_blob_ids_pin_small_files(files: Files, tmp_path: Path) -> None:
    def blob(body: bytes) -> str:
        return hashlib.sha1(b"blob %d\0" % len(body) + body).hexdigest()  # noqa: S324

    right = {n: p if n.endswith(".safetensors") else f"etag:{blob(files[n])}" for n, p in pins(files).items()}
    with serving(server := HubServer({NAME: files}, token=RIGHT)):
        assert fetch(NAME, COMMIT, right, access(server), tmp_path / "a", lambda _: None).is_dir()
        with pytest.raises(Stop) as stop:
            fetch(
                NAME,
                COMMIT,
                right | {"config.json": f"etag:{'0' * 40}"},
                access(server),
                tmp_path / "b",
                lambda _: None,
            )
    assert codes(stop) == ["DC277"]


def test_a_refused_token(server: HubServer | ModelScopeServer, files: Files, tmp_path: Path) -> None:
    with pytest.raises(Stop) as stop:
        fetch(NAME, COMMIT, pins(files), access(server, "hf_wrong"), tmp_path, lambda _: None)
    assert codes(stop)[0] in ("DC211", "DC212")
    assert "hf_wrong" not in str([(d.detail, d.fix) for d in stop.value.report])


def test_a_hub_source_without_access_or_pins(files: Files, tmp_path: Path) -> None:
    for revision, pinned in ((None, pins(files)), (COMMIT, {})):
        with pytest.raises(Stop) as stop:
            fetch(NAME, revision, pinned, None, tmp_path, lambda _: None)
        assert codes(stop) == ["DC287"]


@pytest.mark.build
@pytest.mark.usefixtures("inline")
def test_a_hub_model_is_built_and_its_shards_are_compared_with_their_pins(
    server: HubServer | ModelScopeServer, files: Files, tmp_path: Path
) -> None:
    from dataclasses import replace

    small = Small(tmp_path)
    (tmp_path / "made/model").rename(tmp_path / "model")
    small.adapter("qa")
    plain = small.recipe()
    recipe = replace(plain, model_source=NAME, model_hub="huggingface", model_revision=COMMIT, model_files=pins(files))
    built = small.build(recipe, access=access(server))
    assert built.manifest.files == small.build(plain, store=tmp_path / "local").manifest.files
    shard = "model-00001-of-00002.safetensors"
    other = replace(recipe, key="0" * 64, model_files=pins(files) | {shard: f"sha256:{'0' * 64}"})
    if isinstance(server, HubServer):
        with pytest.raises(Stop) as stop:
            small.build(other, access=access(server))
        assert codes(stop) == ["DC277"]
        assert not (small.store / f".building-{other.key}").exists()


def test_a_disk_that_fills_while_downloading(
    server: HubServer | ModelScopeServer, files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit on file sizes stands in for the full disk: no half file is left, and the hub is not blamed."""
    monkeypatch.setattr(hub, "RANGE", 40_000)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            fetched(server, files, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    left = [path for path in tmp_path.rglob("*") if path.is_file() and "made" not in path.parts]
    assert all(path.read_bytes() == files[path.name] for path in left)
    assert fetched(server, files, tmp_path).is_dir()
