"""The catalogue's reader on forms that older and newer versions have beside those of `small_engine`."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest
from small_engine import small_engine

from deployc.facts.catalogue import Unreadable
from deployc.facts.catalogue.batch import batch_defaults
from deployc.facts.catalogue.before_v1 import v1_needs
from deployc.facts.catalogue.behaviour import behaviours
from deployc.facts.catalogue.cpu import cpu
from deployc.facts.catalogue.fetch import unpack
from deployc.facts.catalogue.keywords import derivation
from deployc.facts.catalogue.options import option
from deployc.facts.catalogue.parser import flags
from deployc.facts.catalogue.source import Tree
from deployc.facts.catalogue.write import add
from deployc.types.facts import Flag

ARGUMENTS = "vllm/engine/arg_utils.py"


def changed(tree: Tree, path: str, *changes: tuple[str, str]) -> Tree:
    """The tree with texts of one file replaced; the file is made where it is not there."""
    place = tree.root / path
    text = place.read_text() if place.exists() else ""
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    return Tree(tree.root)


HELD = "class EngineArgs:\n"
TOP = """from vllm.reasoning import OddManager
from vllm.words import *


class StoreBoolean(Action):
    pass


class Format(str, Enum):
    AUTO = "auto"
    PLAIN = "plain"


METHODS = ["a", "b"]


def human_readable_int(value):
    return int(value)


class EngineArgs:
    quiet: bool = not Format
    backend: str = "new" if envs.VLLM_USE_V1 else "old"
    stays: bool = False

"""
FORMS: list[tuple[str, Flag]] = [
    (
        '"--x", action=StoreBoolean, nargs="?", const="True", default=False',
        Flag("x", "bool", ("true", "false"), "false"),
    ),
    (
        '"--x", choices=[f.value for f in Format], default=Format.AUTO.value',
        Flag("x", "str", ("auto", "plain"), "auto"),
    ),
    ('"--x", choices=[*METHODS, None]', Flag("x", "str", ("a", "b"))),
    ('"--x", choices=list(OddManager.odd_parsers)', Flag("x", "str", ("one", "two", "three"))),
    ('"--x", choices=OddManager.odd_parsers.keys()', Flag("x", "str", ("one", "two", "three"))),
    ('"--x", choices=[",".join(p) for p in permutations(METHODS, r=2)]', Flag("x", "str", ("a,b", "b,a"))),
    ('"--x", choices=WORDS', Flag("x", "str", ("in", "out"))),
    ('"--x", type=human_readable_int', Flag("x", "size")),
    ('"--x", type=Format.from_cli', Flag("x", "json")),
    ('"--x", type=bool, default=True', Flag("x", "str", (), "True")),
    ('"--x", default=EngineArgs.backend', Flag("x", "str", (), "new")),
    ('"--x", action="store_true", default=not EngineArgs.stays', Flag("x", "bool", (), "true")),
    ('"--x", choices=[f.name for f in Format]', Flag("x", "str")),  # a form that is not known: left out
]


@pytest.mark.parametrize(("written", "flag"), FORMS, ids=[written for written, _ in FORMS])
def test_an_option_as_older_versions_write_it(tmp_path: Path, written: str, flag: Flag) -> None:
    tree = small_engine(tmp_path)
    going = 'parser.add_argument("--going", deprecated=True, default=argparse.SUPPRESS)'
    tree = changed(tree, ARGUMENTS, (HELD, TOP), (going, f"parser.add_argument({written})"))
    changed(tree, "vllm/words.py")
    (tmp_path / "vllm/words.py").write_text('WORDS = ["in", "out"]\n')
    (tmp_path / "vllm/reasoning").mkdir(exist_ok=True)
    (tmp_path / "vllm/reasoning/__init__.py").write_text(
        "from .manager import OddManager\nfrom .first import First\nfrom .second import Second\n"
    )
    (tmp_path / "vllm/reasoning/manager.py").write_text("class OddManager:\n    odd_parsers: dict = {}\n")
    (tmp_path / "vllm/reasoning/first.py").write_text('@OddManager.register_module("one")\nclass First:\n    pass\n')
    (tmp_path / "vllm/reasoning/second.py").write_text(
        '@OddManager.register_module(["two", "three"])\nclass Second:\n    pass\n'
    )
    (tmp_path / "vllm/reasoning/unused.py").write_text('@OddManager.register_module("four")\nclass No:\n    pass\n')
    assert flags(tree)["x"] == flag


def test_how_keywords_are_made_of_fields(tmp_path: Path) -> None:
    """By `_compute_kwargs`; before 0.9.2 by `get_kwargs`, whose Literals were closed; in 0.8.4 inside the parser."""
    tree = small_engine(tmp_path)
    now = derivation(tree)
    assert (now.by_hint, now.sizes, now.closed) == (True, frozenset({"max_model_len", "cache_bytes"}), True)
    open_ended = "def literal_to_kwargs(hints):\n    return 'metavar'\n\n\ndef _compute_kwargs"
    assert derivation(changed(tree, ARGUMENTS, ("def _compute_kwargs", open_ended))).closed is False
    assert derivation(changed(tree, ARGUMENTS, ("def _compute_kwargs", "def get_kwargs"))).by_hint is True
    local = "        def get_kwargs(cls: type[Any]) -> Dict[str, Any]:\n            pass\n\n        model_kwargs = get"
    inside = changed(tree, ARGUMENTS, ("def get_kwargs", "def elsewhere"), ("        model_kwargs = get", local))
    assert derivation(inside).by_hint is False
    found = flags(inside)
    assert (found["max-model-len"].type, found["names"].type, found["dtype"].choices) == ("int", "str", ())


PAIRS = '_inverse_prefixes = {"--enable-": "--disable-", "--disable-": "--enable-"}\nBooleanOptionalAction\n'


def test_a_switch_with_an_opposite(tmp_path: Path) -> None:
    tree = small_engine(tmp_path)
    changed(tree, "vllm/utils/argparse_utils.py")
    (tmp_path / "vllm/utils/argparse_utils.py").write_text(PAIRS)
    flag = flags(Tree(tmp_path))["enable-prefix-caching"]
    assert flag.aliases == ("no-enable-prefix-caching", "disable-prefix-caching")
    assert all(map(flag.turned_off_by, flag.aliases))
    (tmp_path / "vllm/utils/argparse_utils.py").write_text("register(BooleanOptionalAction, Another)\n")
    with pytest.raises(Unreadable, match="what it makes of BooleanOptionalAction is not known"):
        flags(Tree(tmp_path))
    assert option(["--plain", "-p"], {"action": "BooleanOptionalAction"}, paired=True).aliases == ("p", "no-plain")


V0 = """\
    def _is_v1_supported_oracle(self, model_config):
        if current_platform.get_device_capability().major < 8:
            return False
        if self.kv_cache_dtype != "auto":
            supported = flash_attn_supports_fp8()
        V1_SUPPORTED_DTYPES = [torch.bfloat16, torch.float16]
        V1_UNSUPPORTED_QUANT = ["gguf"]
        if self.enable_lora and _warn_or_fallback("LORA"):
            return False

    def _set_default_args_v0(self, model_config):
        self.max_num_seqs = 256

    def _set_default_args_v1(self, usage_context):
        if "h100" in device_name or "h200" in device_name:
            default_max_num_batched_tokens = {UsageContext.OPENAI_API_SERVER: 8192}
        else:
            default_max_num_batched_tokens = {UsageContext.OPENAI_API_SERVER: 2048}
        default_max_num_seqs = 1024

    def get_batches_of_another(cls, world_size):"""
BATCH = "    def get_batch_defaults(cls, world_size):"


def with_v0(folder: Path) -> Tree:
    tree = changed(small_engine(folder), ARGUMENTS, (BATCH, V0))
    return changed(
        tree,
        "vllm/config/__init__.py",
        ("from vllm.config.cache", "_DEFAULT_MAX_NUM_BATCHED_TOKENS = 2048\nfrom vllm.config.cache"),
    )


def test_batch_defaults_by_the_cards_name_and_v0s_on_the_cpu(tmp_path: Path) -> None:
    rules, place = batch_defaults(with_v0(tmp_path))
    assert rules == [
        {"device": "cpu", "tokens": 2048, "seqs": 256},
        {"gpu": ["h100", "h200"], "tokens": 8192, "seqs": 1024},
        {"tokens": 2048, "seqs": 1024},
    ]
    line = int(place.rpartition(":")[2])
    assert "_set_default_args_v1" in (tmp_path / ARGUMENTS).read_text().splitlines()[line - 1]


def test_a_cpu_that_v1_takes_for_a_card(tmp_path: Path) -> None:
    tree = changed(
        with_v0(tmp_path),
        "vllm/platforms/cpu.py",
        ("class CpuPlatform:\n", "class CpuPlatform:\n    def supports_v1(cls): ...\n"),
    )
    assert [rule for rule in batch_defaults(tree)[0] if rule.get("device") == "cpu"] == [
        {"device": "cpu", "tokens": 8192, "seqs": 1024},
        {"device": "cpu", "tokens": 2048, "seqs": 1024},
    ]
    assert "cpu" not in v1_needs(tree)["v1_needs"][0]


def test_what_v1_needs(tmp_path: Path) -> None:
    assert v1_needs(with_v0(tmp_path))["v1_needs"][0] == {
        "capability": [8, 0], "dtypes": ["bfloat16", "float16"], "quantization": ["gguf"], "kv_fp8": [9], "lora": False,
        "cpu": False,
    }  # fmt: skip
    shutil.rmtree(tmp_path)
    assert v1_needs(small_engine(tmp_path)) == {}


def test_a_cpu_pool_of_4_gib_and_blocks_that_hang_on_its_packages(tmp_path: Path) -> None:
    tree = small_engine(tmp_path)
    tree = changed(
        tree,
        "vllm/v1/worker/cpu_worker.py",
        ("int(self.requested_cpu_memory - consumed_memory)", "self.cache_config.cpu_kvcache_space_bytes"),
    )
    block = ("cache_config.block_size = 64", "cache_config.block_size = 128 if ipex_available else 16")
    pool = (
        "cache_config.kv_cache_memory_bytes = kv",
        "kv_cache_space = 4 * GiB_bytes\n        cache_config.bytes = kv",
    )
    tree = changed(tree, "vllm/platforms/cpu.py", block, pool)
    for asked, size in (("torch\n", 16), ("intel_extension_for_pytorch==2.7.0\n", 128)):
        changed(tree, "requirements/cpu.txt")
        (tmp_path / "requirements/cpu.txt").write_text(asked)
        found = cpu(Tree(tmp_path))[0]
        assert (found["block_size"], found["kv_space_unset"]) == (size, "four_gib")


def test_rotary_scaling_before_it_was_renamed(tmp_path: Path) -> None:
    tree = small_engine(tmp_path)
    older = (
        "def patch_rope_parameters(config):\n    config.rope_parameters",
        "def patch_rope_scaling(config):\n    config.rope_scaling",
    )
    assert behaviours(changed(tree, "vllm/transformers_utils/config.py", older))["rope_key"][0] == "rope_scaling"


def test_a_version_that_has_one_runner_alone(tmp_path: Path) -> None:
    tree = small_engine(tmp_path, gpu_worker=(" - cudagraph_memory_estimate_applied", ""))
    changed(tree, "vllm/envs.py", ('"VLLM_USE_V2_MODEL_RUNNER": ', '"ANOTHER": '))
    (tmp_path / "vllm/v1/worker/gpu/model_runner.py").unlink()
    assert behaviours(Tree(tree.root))["model_runners"][0] == [{"runner": "V1"}]


def wheel_of(folder: Path, **changes: tuple[str, str]) -> Tree:
    """An unpacked wheel: no Dockerfile, no setup.py."""
    tree = small_engine(folder, **changes)
    shutil.rmtree(folder / "docker")
    (folder / "setup.py").unlink()
    (folder / "vllm-1.dist-info").mkdir()
    return Tree(tree.root)


def test_a_wheels_image_is_that_of_the_versions_around_it(tmp_path: Path) -> None:
    stored = tmp_path / "stored"
    stored.mkdir()
    add("1.0.0", small_engine(tmp_path / "a"), stored)
    wheel = wheel_of(tmp_path / "b")
    with pytest.raises(Unreadable, match="not between versions whose image is known"):
        add("1.1.0", wheel, stored)
    add("1.2.0", small_engine(tmp_path / "c"), stored)
    before = (stored / "behaviour.json").read_text()
    add("1.1.0", wheel, stored)
    assert (stored / "behaviour.json").read_text() == before
    index: dict[str, Any] = json.loads((stored / "versions.json").read_text())
    assert (index["versions"], index["wheels"]) == (["1.0.0", "1.1.0", "1.2.0"], ["1.1.0"])
    add("1.2.0", small_engine(tmp_path / "d", Dockerfile=("13.0.2", "13.1.0")), stored)
    with pytest.raises(Unreadable, match=r"1\.0\.0 and 1\.2\.0 differ in cuda"):
        add("1.1.0", wheel, stored)


def test_a_wheel_is_unpacked_as_far_as_it_is_read(tmp_path: Path) -> None:
    archive = tmp_path / "vllm-1.2.3-cp38-abi3-manylinux_2_31_x86_64.whl"
    with zipfile.ZipFile(archive, "w") as opened:
        for name in ("vllm/a.py", "vllm/_C.abi3.so", "vllm-1.2.3.dist-info/METADATA", "../outside.py"):
            opened.writestr(name, "")
    root = unpack(archive, tmp_path / "into")
    assert root == tmp_path / "into" / "vllm-1.2.3"
    found = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
    assert found == ["outside.py", "vllm-1.2.3.dist-info/METADATA", "vllm/a.py"]
    assert not (tmp_path / "outside.py").exists()
    assert Tree(root).wheel
