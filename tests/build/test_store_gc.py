"""What can go from a store: only what is surely needed by nobody, and never a folder that is no key."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Collection
from pathlib import Path

import pytest
from shelved import KEY, OTHER, THIRD, artifact

from deployc.build import store
from deployc.build.store import contents, faults
from deployc.build.store.gc import Needs, Surplus, remove, surplus
from deployc.types.bundle import Recipe

COMMIT, NEWER = "1" * 40, "2" * 40
DOUBT = faults.unknown_uses("/state/x", "it is no folder")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "store"


def needs(used: Collection[str] = (), current: Recipe | None = None, keep: int = 0) -> Needs:
    return Needs(used, current, keep)


def recipe(key: str, source: str = "org/model", revision: str = COMMIT) -> Recipe:
    return Recipe(key, source, "huggingface", revision, {}, (("qa", "org/qa", NEWER, 1.0),), {}, "none", "bfloat16", ())


def names(found: list[Surplus]) -> set[tuple[str, str]]:
    return {(one.kind, one.path.name) for one in found}


def download(place: Path, source: str, revision: str, hub: str = "huggingface") -> Path:
    folder = place / "sources" / hub / source / revision
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_text("weights")
    return folder


def test_an_artifact_goes_that_nobody_uses(place: Path) -> None:
    for key in (KEY, OTHER, THIRD):
        artifact(place, key)
    found, told = surplus(place, needs(used=[KEY], current=recipe(OTHER)))
    (gone,) = found
    assert (gone.kind, gone.key, gone.bytes, told) == ("artifact", THIRD, len("{}weights"), [])
    assert remove(place, gone) is None
    assert [p.name for p in sorted(place.iterdir())] == [KEY, OTHER]


def test_the_newest_of_those_that_nobody_uses_stay(place: Path) -> None:
    for year, key in enumerate((KEY, OTHER, THIRD)):
        artifact(place, key, f"203{year}-01-01T00:00:00+00:00")
    kept = {keep: {path for _, path in names(surplus(place, needs(keep=keep))[0])} for keep in (0, 1, 2, 3)}
    assert kept == {0: {KEY, OTHER, THIRD}, 1: {KEY, OTHER}, 2: {KEY}, 3: set()}
    assert names(surplus(place, needs(used=[THIRD], keep=1))[0]) == {("artifact", KEY)}


def test_with_a_doubt_nothing_goes_that_a_deployment_may_use(place: Path) -> None:
    artifact(place, KEY, recipe={"model_source": "org/model", "model_revision": COMMIT})
    (place / OTHER).mkdir()
    (place / f".building-{THIRD}").mkdir()
    download(place, "org/model", COMMIT)
    found, told = surplus(place, Needs((), None, 0, (DOUBT,)))
    assert (names(found), told) == ({("unfinished", f".building-{THIRD}")}, [DOUBT])


def test_unfinished_builds_go_that_nobody_is_at(place: Path) -> None:
    for key in (KEY, OTHER):
        (place / f".building-{key}").mkdir(parents=True)
        (place / f".building-{key}" / "model-1").write_text("weights")
    (place / f".building-{OTHER}.lock").write_text("")  # what a killed build leaves
    download(place, "org/model", COMMIT)
    artifact(place, THIRD)  # the one at work may be measured against it
    with store.held(place, KEY, lambda: None):
        found, told = surplus(place, needs())
        assert names(found) == {("unfinished", f".building-{OTHER}"), ("remains", f".building-{OTHER}.lock")}
        assert [(d.code, KEY[:12] in d.detail) for d in told] == [("DC290", True)]
        assert [remove(place, one) for one in found] == [None, None]
        assert {p.name for p in place.iterdir()} == {f".building-{KEY}", f".building-{KEY}.lock", "sources", THIRD}
        held = Surplus("unfinished", place / f".building-{KEY}", 0, "", KEY)
        assert [d.code for d in [remove(place, held)] if d] == ["DC290"], "one that was begun since stays"
    assert (place / f".building-{KEY}" / "model-1").exists()


def test_looking_for_builds_changes_nothing(place: Path) -> None:
    place.mkdir()
    lock = place / f".building-{KEY}.lock"
    lock.write_text("")
    assert contents.unfinished(place) == []
    assert contents.stale_locks(place) == [(KEY, lock)]
    assert lock.exists()
    with lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert [(one.key, one.bytes, one.at_work) for one in contents.unfinished(place)] == [(KEY, 0, True)]
        assert contents.stale_locks(place) == []


def test_damaged_folders_go_unless_a_deployment_has_them(place: Path) -> None:
    for key in (KEY, OTHER):
        artifact(place, key)
        (place / key / "config.json").unlink()
    found, _ = surplus(place, needs(used=[OTHER]))
    assert names(found) == {("damaged", KEY)}
    assert "config.json" in found[0].why


@pytest.mark.parametrize(
    "name", ["notes", "a" * 63, "A" * 64, f".building-{'a' * 63}", "lost+found", ".building-x.lock"]
)
def test_what_is_no_key_is_never_touched(place: Path, name: str) -> None:
    (place / name).mkdir(parents=True)
    (place / name / "mine").write_text("mine")
    assert surplus(place, needs()) == ([], [])


def test_sources_stay_that_something_was_or_will_be_made_of(place: Path) -> None:
    kept = {"model_source": "org/kept", "model_revision": COMMIT, "adapters": [["qa", "org/other", NEWER, 1.0]]}
    artifact(place, KEY, recipe=kept)
    artifact(place, OTHER, recipe={"model_source": "org/gone", "model_revision": COMMIT})
    stay = [("org/kept", COMMIT), ("org/other", NEWER), ("org/model", COMMIT), ("org/qa", NEWER)]
    go = [("org/kept", NEWER), ("org/gone", COMMIT), ("gpt2", COMMIT)]
    for source, revision in (*stay, *go):
        download(place, source, revision)
    found, _ = surplus(place, needs(used=[KEY], current=recipe(THIRD)))
    assert {(p.parent.name, p.name) for p in (one.path for one in found if one.kind == "source")} == {
        ("kept", NEWER), ("gone", COMMIT), ("gpt2", COMMIT),
    }  # fmt: skip
    for one in found:
        assert remove(place, one) is None
    assert {(one.source, one.revision) for one in contents.sources(place)} == set(stay)
    assert not (place / "sources" / "huggingface" / "gpt2").exists()
    for one in surplus(place, needs())[0]:
        assert remove(place, one) is None
    assert list(place.iterdir()) == [], "empty folders go with the last of them"


@pytest.mark.parametrize("wrong", [None, 3, [3], [["qa"]], [["qa", 3, None, 1.0]], {"qa": 1}])
def test_a_recipe_that_is_none_is_read_as_far_as_it_goes(wrong: object) -> None:
    made = contents.made_of({"model_source": "org/model", "model_revision": None, "adapters": wrong})
    assert [(one.source, one.revision) for one in made] == [("org/model", None)]
    assert contents.made_of({"model_source": 3}) == []


def test_links_are_not_followed(place: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / COMMIT).mkdir(parents=True)
    (elsewhere / COMMIT / "mine").write_text("mine")
    (place / "sources").mkdir(parents=True)
    (place / "sources" / "huggingface").symlink_to(elsewhere)
    (place / KEY).symlink_to(elsewhere)
    found, _ = surplus(place, needs())
    assert [(one.kind, one.bytes) for one in found] == [("damaged", 0)]
    assert remove(place, found[0]) is None
    assert (elsewhere / COMMIT / "mine").exists()
    assert not (place / KEY).is_symlink()


def test_a_removal_that_is_cut_short_leaves_no_artifact_and_is_gone_on_with(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifact(place)
    download(place, "org/model", COMMIT)
    first, _ = surplus(place, needs())

    def crash(path: Path) -> None:
        (path / "model.safetensors").unlink()
        raise KeyboardInterrupt

    for one in first:
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(shutil, "rmtree", crash)
            remove(place, one)
    assert (store.artifacts(place), store.damaged(place), contents.sources(place)) == ([], [], [])
    found, _ = surplus(place, needs())
    assert [one.kind for one in found] == ["remains", "remains"]
    for one in found:
        assert remove(place, one) is None
    assert [p for p in place.rglob("*") if p.is_file()] == []


def test_what_the_system_refuses_is_told_by_name(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    artifact(place)
    ((gone,), _) = surplus(place, needs())

    def refuse(path: Path, _: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "rename", refuse)
    found = remove(place, gone)
    assert found is not None
    assert (found.code, KEY in found.detail, "Permission denied" in found.detail) == ("DC291", True, True)
    assert store.artifact_for(place, KEY) is not None
    assert os.listdir(place) == [KEY]  # noqa: PTH208
