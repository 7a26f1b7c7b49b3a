"""Compressing tensor names and expanding them again is the identity, compact and fast."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployc.types.facts import TensorGroup
from deployc.types.groups import Tensor, compress, expand

PART = st.one_of(
    st.integers(0, 12).map(str),
    st.sampled_from(["layers", "experts", "w", "00", "07", "{", "}", "{0-3}", "{{", "\0", ""]),
)
NAME = st.lists(PART, min_size=1, max_size=5).map(".".join)
TENSOR = st.tuples(NAME, st.sampled_from(["BF16", "F32"]), st.sampled_from([(4,), (4, 8), ()]))


def back(groups: tuple[TensorGroup, ...]) -> list[Tensor]:
    return sorted((name, g.dtype, g.shape) for g in groups for name in expand(g))


@given(st.lists(TENSOR, unique_by=lambda t: t[0], max_size=60))
def test_what_goes_in_comes_out(tensors: list[Tensor]) -> None:
    groups = compress(tensors)
    assert back(groups) == sorted(tensors)
    assert compress(reversed(tensors)) == groups


def test_layers_and_experts_are_one_line_each() -> None:
    tensors: list[Tensor] = [
        (f"model.layers.{i}.mlp.experts.{j}.up_proj.weight", "BF16", (768, 2048)) for i in range(48) for j in range(128)
    ]
    (group,) = compress(tensors)
    assert group.pattern == "model.layers.{0-47}.mlp.experts.{0-127}.up_proj.weight"
    assert group.count == 48 * 128
    assert group.elements == 48 * 128 * 768 * 2048


def test_gaps_stay_gaps() -> None:
    tensors: list[Tensor] = [(f"l.{i}.w", "F32", (2,)) for i in (0, 1, 2, 3, 5, 9, 10)]
    assert [g.pattern for g in compress(tensors)] == ["l.{0-3,5,9-10}.w"]
    ragged: list[Tensor] = [(f"l.{i}.e.{j}", "F32", (2,)) for i, n in ((0, 2), (1, 2), (2, 3)) for j in range(n)]
    assert [(g.pattern, g.count) for g in compress(ragged)] == [("l.2.e.{0-2}", 3), ("l.{0-1}.e.{0-1}", 4)]


def test_another_shape_is_another_group() -> None:
    tensors: list[Tensor] = [("l.0.w", "F32", (2,)), ("l.1.w", "F32", (3,)), ("l.2.w", "BF16", (2,))]
    assert [(g.pattern, g.count) for g in compress(tensors)] == [("l.0.w", 1), ("l.1.w", 1), ("l.2.w", 1)]


def test_forty_five_thousand_tensors_are_three_groups() -> None:
    tensors: list[Tensor] = [
        (f"model.layers.{i}.mlp.experts.{j}.{p}_proj.weight", "BF16", (768, 2048))
        for i in range(60)
        for j in range(250)
        for p in ("up", "gate", "down")
    ]
    assert [g.count for g in compress(tensors)] == [15_000] * 3


def test_a_count_that_the_pattern_does_not_name_is_an_error() -> None:
    with pytest.raises(ValueError, match="names 28 tensors, not 27"):
        expand(TensorGroup("model.layers.{0-27}.w", "BF16", (1,), 27))
    with pytest.raises(ValueError, match="no range"):
        expand(TensorGroup("l.{0-99999999999}.w", "BF16", (1,), 27))
