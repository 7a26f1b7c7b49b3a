"""What a real engine serves of a merged int8 model, and what was said of it before: nothing here changes anything."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from engine_fixtures import Serving
from real_engine import KEY

pytestmark = pytest.mark.engine


def test_apply_says_where_it_serves(serving: Serving) -> None:
    planned, applied = serving.planned.document, serving.applied.document
    assert [step["action"] for step in planned["steps"]] == ["build", "create", "verify"]
    assert (applied["changed"], applied["url"]) == (True, serving.made.url)
    assert applied["digest"] == planned["digest"]
    models = serving.made.get("/v1/models").json()["data"]
    assert [model["id"] for model in models] == ["smollm2-demo"]
    assert Path(models[0]["root"]).parent == serving.made.store, "it serves the artifact, under a path full of quotes"


def test_a_streamed_answer_states_what_the_adapter_was_taught(serving: Serving) -> None:
    for fact in serving.facts:
        assert not fact.known(fact.base), f"the base model knows it already: {fact.base}"
        pieces, ended = serving.made.chat(fact.question)
        assert fact.known("".join(pieces)), f"{fact.question} -> {''.join(pieces)}; the base said {fact.base}"
        assert len(pieces) > 1 and ended


def test_another_key_or_none_is_turned_away(serving: Serving) -> None:
    assert serving.made.get("/v1/models", key="another").status_code == 401
    assert serving.made.get("/v1/models", key="").status_code == 401
    assert serving.made.get("/v1/models").status_code == 200


def test_the_key_is_in_no_argument_log_plan_history_or_artifact(serving: Serving) -> None:
    made = serving.made
    seen = 0
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = process.read_bytes()
        except OSError:
            continue
        seen += made.root.name.encode() in words
        assert KEY.encode() not in words
    assert seen >= 2, "supervisor and engine were looked at"
    said = [serving.planned, serving.applied, made.deployc("status"), made.deployc("logs", "-n", "100000")]
    assert all(KEY not in done.out + done.err for done in said)
    secrets = [file for file in made.state.secrets.rglob("*") if file.is_file()]
    assert [file.read_text() for file in secrets] == [KEY]
    assert secrets[0].stat().st_mode & 0o777 == 0o600
    others = [f for f in made.root.rglob("*") if f.is_file() and f not in secrets and f.stat().st_size < 2**24]
    assert len(others) > 10
    assert [file for file in others if KEY.encode() in file.read_bytes()] == []


def test_the_kv_cache_holds_the_tokens_that_were_predicted(serving: Serving) -> None:
    log = serving.made.deployc("logs", "-n", "100000").out
    said = re.search(
        r"KV cache size: ([\d,]+) tokens, Maximum concurrency for ([\d,]+) tokens per request: ([\d.]+)x", log
    )
    assert said, log
    prediction = serving.planned.document["prediction"]
    assert prediction["kv_cache_tokens"]["value"] == int(said[1].replace(",", ""))
    assert prediction["max_concurrency"]["value"] == pytest.approx(float(said[3]), rel=0.01)


def test_the_weights_take_the_bytes_that_were_predicted(serving: Serving) -> None:
    artifact = Path(serving.made.get("/v1/models").json()["data"][0]["root"])  # the 16-bit model lies beside it
    held = 0
    for file in artifact.glob("*.safetensors"):
        with file.open("rb") as opened:
            header = json.loads(opened.read(int.from_bytes(opened.read(8), "little")))
        held += sum(t["data_offsets"][1] - t["data_offsets"][0] for name, t in header.items() if name != "__metadata__")
    assert serving.planned.document["prediction"]["memory"]["weights"]["value"] == pytest.approx(held, rel=0.03)


def test_status_says_that_it_serves(serving: Serving) -> None:
    status = serving.made.status()
    assert (status["condition"], status["served_name"], status["restarts"]) == ("serving", "smollm2-demo", 0)
    assert status["url"] == serving.made.url and status["engine"] == "0.32.0"
    assert status["resident_bytes"] > 2**30, "torch, the weights and 1 GiB of KV cache"
    assert "Traceback" not in serving.made.deployc("status").out


def test_a_second_apply_changes_nothing(serving: Serving) -> None:
    before = serving.made.status()
    again = serving.made.deployc("apply", "--json")
    assert (again.code, again.document["changed"]) == (0, False)
    after = serving.made.status()
    assert (after["pid"], after["entry"]) == (before["pid"], before["entry"])
    assert serving.made.deployc("plan", "--detailed-exitcode").code == 0
