"""What is refused before a weight is read, because memory or disk would not do."""

from __future__ import annotations

from pathlib import Path

import pytest

from deployc.facts.faults import Fault

pytestmark = pytest.mark.build
GIB = 2**30


@pytest.mark.parametrize(("available", "fits"), [(16 * GIB, True), (15 * GIB + 1024, True), (15 * GIB - 1024, False)])
def test_too_little_memory(monkeypatch: pytest.MonkeyPatch, available: int, fits: bool) -> None:
    """A model of 12 GiB and a line of half a GiB take 15 GiB."""
    from deployc.build.quality import room

    monkeypatch.setattr(room, "available", lambda: available)
    if fits:
        assert room.device(12 * GIB, GIB // 2, "cpu") == ("cpu", "")
        return
    with pytest.raises(Fault) as caught:
        room.device(12 * GIB, GIB // 2, "cpu")
    found = caught.value.diagnostic
    assert found.code == "DC266"
    assert "15.0 GiB: a model at 16 bit 12.0 GiB, logits of a line 2.00 GiB, the rest 1 GiB" in found.detail


@pytest.mark.parametrize(
    ("free", "expected"), [(16 * GIB, ("cuda", "")), (8 * GIB, ("cpu", "The GPU has 8.00 GiB free"))]
)
def test_a_gpu_is_used_where_a_model_fits(
    monkeypatch: pytest.MonkeyPatch, free: int, expected: tuple[str, str]
) -> None:  # fmt: skip
    import torch

    from deployc.build.quality import room

    monkeypatch.setattr(room, "available", lambda: 64 * GIB)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (free, 80 * GIB))
    device, why = room.device(12 * GIB, GIB // 2)
    assert device == expected[0] and why.startswith(expected[1])


def test_too_little_disk(tmp_path: Path) -> None:
    from deployc.build.quality import room
    from deployc.build.quality.samples import Scored

    lines = [Scored((1,) * 11, 1)]
    room.check_disk(tmp_path, lines, 1024)
    with pytest.raises(Fault) as caught:
        room.check_disk(tmp_path, lines, 2**50)
    assert caught.value.diagnostic.code == "DC266"
    assert "10240 TiB" in caught.value.diagnostic.detail.replace(",", "")


@pytest.mark.parametrize(
    ("answer", "valid"),
    [
        ('{"a": [1, 2]}', True), (' ["red"]\n', True), ("<think>\n{</think>{}", True), ("[]", True),
        ('{"a": 1', False), ("```json\n{}\n```", False), ('Here: {"a": 1}', False), ("12", False), ('"red"', False),
        ("null", False), ("[NaN]", False), ("", False), ("[" * 100_000, False),
    ],
)  # fmt: skip
def test_an_answer_is_json_as_a_whole(answer: str, valid: bool) -> None:
    from deployc.build.quality.answers import is_json

    assert is_json(answer) is valid
