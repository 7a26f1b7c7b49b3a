"""What calibration takes of memory: sums by hand, and what a host has left."""

from __future__ import annotations

from pathlib import Path

from deployc.build.available import available
from deployc.build.calibrated.memory import LIBRARIES, Width, layer_of, memory

WIDTH = Width(hidden_size=8, num_attention_heads=2, head_dim=4)
TENSORS = [
    ("model.embed_tokens.weight", "BF16", (10, 8)),
    ("model.layers.0.up_proj.weight", "BF16", (32, 8)),
    ("model.layers.0.down_proj.weight", "BF16", (8, 32)),
    ("model.layers.1.up_proj.weight", "BF16", (16, 8)),
    ("model.norm.weight", "F32", (8,)),
]
LAYERS = {name: layer_of(name) for name, _, _ in TENSORS if name.endswith("_proj.weight")}


def test_the_layer_is_the_first_number_of_a_name() -> None:
    assert [layer_of("model.layers.12.mlp.experts.3.w1.weight"), layer_of("lm_head.weight")] == [12, -1]


def test_sums_by_hand() -> None:
    parts = memory(TENSORS, LAYERS, [3, 5], WIDTH, "gptq")
    assert parts["the 16-bit model"] == 2 * (80 + 256 + 256 + 128) + 4 * 8
    assert parts["activations of all samples"] == 2 * sum(2 * n * 8 + n * n + 2 * n * 4 for n in (3, 5))
    # layer 0: a Hessian for 8 and one for 32 inputs; three of the widest and three of the largest weight while it works
    assert parts["one layer's work"] == 4 * (8 * 8 + 32 * 32) + 4 * (3 * 32 * 32 + 3 * 256)
    assert parts["one sample's attention"] == 2 * 5 * 5 * 8
    assert parts["libraries"] == LIBRARIES
    awq = memory(TENSORS, LAYERS, [3, 5], WIDTH, "awq")["one layer's work"]
    assert awq == 2 * 2 * 8 * 8 + parts["activations of all samples"] + 3 * 2 * (256 + 256)
    assert memory(TENSORS, LAYERS, [3, 5], WIDTH, "smoothquant")["one layer's work"] == 2 * 4 * 256


def test_more_of_anything_takes_more() -> None:
    def total(lengths: list[int], method: str = "awq") -> int:
        return sum(memory(TENSORS, LAYERS, lengths, WIDTH, method).values())

    assert total([3]) < total([4]) < total([4, 4]) < total([4, 4, 4])


def test_what_a_host_has_left(tmp_path: Path) -> None:
    assert available(tmp_path) is None
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text("MemTotal:  99 kB\nMemAvailable:      50 kB\n")
    assert available(tmp_path) == 50 * 1024
    (tmp_path / "proc/self/cgroup").write_text("0::/a/b\n")
    inner, outer = tmp_path / "sys/fs/cgroup/a/b", tmp_path / "sys/fs/cgroup/a"
    inner.mkdir(parents=True)
    for folder, limit, held in ((inner, "max", "9"), (outer, "30000", "12000")):
        (folder / "memory.max").write_text(limit + "\n")
        (folder / "memory.current").write_text(held + "\n")
    assert available(tmp_path) == 18000
    (outer / "memory.stat").write_text("anon 11000\ninactive_file 500\n")
    assert available(tmp_path) == 18500
    (outer / "memory.current").write_text("40000\n")
    assert available(tmp_path) == 0
    (tmp_path / "proc/self/cgroup").write_text("4:memory:/a\n")
    assert available(tmp_path) == 50 * 1024
    (tmp_path / "sys/fs/cgroup/memory/a").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/memory/a/memory.limit_in_bytes").write_text("20000\n")
    assert available(tmp_path) == 20000


def test_this_host_says_something() -> None:
    assert (available() or 0) > 2**20
