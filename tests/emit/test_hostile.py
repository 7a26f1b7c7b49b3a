"""Whatever stands in a deploy.yaml is refused at its place, or shipped; `test_hostile_files.py` reads what is shipped.

The texts are in `data/hostile.json`; the places come from the models, so that a new key is among them. Every text is
tried at every place.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path as File

import pytest
import readback
from hostile import KEY, TEXTS
from hostile_bundles import (
    FIELDS,
    READ,
    UNREADABLE,
    compiled,
    harmless,
    references,
    refused_at_its_place,
    taken,
    unit,
    with_text,
    without_secret_files,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from deployc.emit.paths import filled
from deployc.source import load
from deployc.spec.deploy import Path

SOMETHING = "plain"
SPECIAL = st.text(
    st.sampled_from(list("$%\\\"'`{}()[]|&;<>*?~#!@^ \t\n=:,-.+/%é中😀\u202e\u0085\uffff\ufeff0aA")), max_size=30
)


def test_there_are_enough_of_them() -> None:
    assert len(TEXTS) >= 60
    assert {("model", "source"), ("engine", "args", KEY), ("engine", "env", "NAME")} <= set(FIELDS)


@pytest.mark.parametrize("place", FIELDS, ids=lambda place: ".".join(map(str, place)))
def test_what_is_not_hostile_is_taken_or_refused_for_what_it_is(place: Path) -> None:
    """Else a text would be refused because of what stands beside it, and nothing would have been tried."""
    _, report, document = compiled(with_text(place, SOMETHING))
    assert not report.errors or refused_at_its_place(place, SOMETHING, report, document)


def test_every_text_at_every_place_is_refused_there_or_shipped() -> None:
    places = taken()
    assert sum(map(len, places.values())) > 10 * len(READ)
    assert ("engine", "args", "NAME") in places["substitution"]
    assert ("engine", "args", "NAME") not in places["option"]


@pytest.mark.parametrize("name", TEXTS)
def test_a_file_is_read_as_it_stands_or_refused(name: str, tmp_path: File) -> None:
    text, path = TEXTS[name], tmp_path / "deploy.yaml"
    values = with_text(("engine", "args", "x"), text.replace("${", "$${")) | {"extends": None}
    del values["extends"]
    path.write_text(json.dumps(values, ensure_ascii="\\ud" in ascii(text)))
    document, report = load(path, {})
    if not report.errors:
        assert document is not None and document.values["engine"]["args"]["x"] == text
    assert bool(report.errors) or name not in UNREADABLE
    path.write_text(json.dumps({"extends": text}))
    assert load(path, {})[1].errors


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(FIELDS), SPECIAL | st.text(max_size=20))
def test_texts_that_nobody_thought_of(place: Path, text: str) -> None:
    """Refused at its place, or as many words, keys and lines as something harmless."""
    bundle, report, document = compiled(with_text(place, text))
    if bundle is None:
        assert refused_at_its_place(place, text, report, document)
        return
    plain = compiled(with_text(place, harmless(text)))[0]
    if plain is None:
        return
    assert len(bundle.launches[0].argv) == len(plain.launches[0].argv)
    keys_of = [[key for _, key, _ in readback.unit(unit(made))] for made in (bundle, plain)]
    assert keys_of[0] == keys_of[1]
    dockerfiles = [[name for name, _ in readback.dockerfile(b.files["Dockerfile"])] for b in (bundle, plain)]
    assert dockerfiles[0] == dockerfiles[1]
    launch = bundle.launches[0]
    script = 'vllm() { printf "%s\\0" "$@"; }\n' + without_secret_files(bundle.files["command.txt"])
    given = {name: f"/p {name}" for name in launch.paths}
    keys = {where: "key" for kind, _, where in references(bundle) if kind == "env"}
    done = subprocess.run(["sh", "-c", script], capture_output=True, env={"DEPLOYC_FOLDER": "/f", **given, **keys})
    assert done.stdout.decode().split("\0")[:-1] == [filled(word, given) for word in launch.argv[1:]]
