"""What a look at the target says of the artifact's quality: what its manifest in the store keeps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from handmade import QWEN_ON_4090, choices, deploy_of, facts, prediction

from deployc.apply.observe import observe
from deployc.apply.state import State
from deployc.build.store import FORMAT_VERSION, MANIFEST, begin, publish
from deployc.emit import compile_bundle
from deployc.types.bundle import Bundle, Text
from deployc.types.figure import Figure
from deployc.types.manifest import Content, Manifest
from deployc.types.quality import METHOD, Quality

HALF = Figure(0.5, 0.4, 0.6, "", "measured")
QUALITY = Quality(
    method=METHOD, text=Text("calib.jsonl", "sha256:" + "a" * 64, 32, 512), lines=32, tokens=4012,
    perplexity_reference=HALF, perplexity_artifact=HALF, perplexity_increase=HALF, mean_kl=HALF, top1_agreement=HALF,
    valid_json=None, answers=(), worst_layers=(), not_covered=(), device="cpu", seconds=1.0,
)  # fmt: skip


@pytest.fixture
def bundle() -> Bundle:
    made, _ = compile_bundle(deploy_of(QWEN_ON_4090), facts(), choices(), prediction())
    assert made is not None and made.recipe is not None
    return made


@pytest.mark.parametrize("known", [QUALITY, None])
def test_quality_is_that_of_the_artifact_in_the_store(tmp_path: Path, bundle: Bundle, known: Quality | None) -> None:
    store, state = tmp_path / "store", State(tmp_path / "state")
    store.mkdir()
    assert observe(bundle, state, store).quality is None
    assert bundle.recipe is not None
    key = bundle.recipe.key
    into = begin(store, key, 0)
    (into / "config.json").write_text("{}")
    listed = {"config.json": Content(2, "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a")}
    made = Manifest(FORMAT_VERSION, key, {}, {}, listed, "0", "0", 1, "2026-01-01T00:00:00+00:00", {})
    artifact = publish(store, into, replace(made, quality=known))
    assert (artifact.path / MANIFEST).is_file()
    seen = observe(bundle, state, store)
    assert (seen.artifact, seen.quality, seen.digest) == (True, known, None)
    assert observe(replace(bundle, recipe=None), state, store).quality is None
