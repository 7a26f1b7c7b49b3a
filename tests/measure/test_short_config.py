"""A row's short model_config becomes a config.json of its family; what the family does not fix is never guessed."""

from __future__ import annotations

from typing import Any

import pytest
from test_measured_rows import published

from deployc.measure.calibrate.config import Config, Unknown, config_json, spread
from deployc.measure.calibrate.quantized import quantization_config

LLAMA = published("log-017").config or {}


def test_counts_of_layers_are_spread_as_the_released_models_have_them() -> None:
    assert spread({"full_attention": 2, "sliding_attention": 2}) == ["sliding_attention", "full_attention"] * 2
    gemma = spread({"full_attention": 10, "sliding_attention": 50})
    assert gemma == (["sliding_attention"] * 5 + ["full_attention"]) * 10
    assert spread({"full_attention": 1, "linear_attention": 3}) == ["linear_attention"] * 3 + ["full_attention"]
    three = spread({"full_attention": 2, "sliding_attention": 3, "linear_attention": 7})
    assert [three.count(kind) for kind in ("full_attention", "sliding_attention", "linear_attention")] == [2, 3, 7]


@pytest.mark.parametrize("counts", [{}, {"full_attention": -1}, {"full_attention": "many"}, {"full_attention": 10**9}])
def test_counts_that_are_none_are_unknown(counts: dict[str, Any]) -> None:
    with pytest.raises(Unknown, match="layer_types"):
        spread(counts)


def test_a_class_gives_the_model_type() -> None:
    made = config_json(published("log-017"))
    assert made.values["model_type"] == "llama"
    assert made.values["torch_dtype"] == "bfloat16"
    assert made.assumed == frozenset()


def test_a_model_with_a_tower_is_nested_and_gets_its_familys_tower() -> None:
    """google/gemma-3-12b-it: 48 layers, every sixth full; SigLIP of 27 layers with 1152."""
    values = config_json(published("log-008")).values
    assert (values["model_type"], values["text_config"]["model_type"]) == ("gemma3", "gemma3_text")
    assert values["text_config"]["layer_types"].count("full_attention") == 8
    assert values["text_config"]["layer_types"][5] == "full_attention"
    assert values["vision_config"]["num_hidden_layers"] == 27
    assert not {"vision", "has_vision_tower", "sliding_layers_per_full"} & values["text_config"].keys()


def test_a_tower_is_found_by_the_models_name() -> None:
    mistral = {"hidden_size": 5120, "num_hidden_layers": 40, "has_vision_tower": True}
    row = published("log-017", model="mistralai/Mistral-Small-3.1-24B-Instruct-2503", model_config=mistral)
    values = config_json(row).values
    assert values["architectures"] == ["Mistral3ForConditionalGeneration"]
    assert (values["vision_config"]["model_type"], values["vision_config"]["patch_size"]) == ("pixtral", 14)


def test_a_tower_that_nobody_shows_is_an_assumption() -> None:
    row = published("log-017", model_config={**LLAMA, "architectures": ["Qwen3VLForConditionalGeneration"]})
    made = config_json(row)
    assert "vision_config" not in made.values
    assert "towers" in made.assumed


@pytest.mark.parametrize(
    ("changed", "key"),
    [
        ({"model_config": None}, "model_config"),
        ({"model_config": {**LLAMA, "architectures": ["NobodyForCausalLM"]}}, "NobodyForCausalLM"),
        ({"model_config": {"hidden_size": 1}, "model": "nobody/knows", "family": ""}, "architectures"),
        ({"model_config": {**LLAMA, "has_vision_tower": True}}, "vision"),
    ],
)
def test_what_is_not_known_is_named(changed: dict[str, Any], key: str) -> None:
    with pytest.raises(Unknown, match=key):
        config_json(published("log-017", **changed))


def test_positions_are_the_rows_else_the_released_models_else_an_assumption() -> None:
    short = {key: value for key, value in LLAMA.items() if key != "max_position_embeddings"}
    named = published("log-017", model_config=short, max_model_len=None)
    assert config_json(named).values["max_position_embeddings"] == 131072
    assert config_json(named).assumed == frozenset()
    unnamed = published("log-017", model_config=short, model="someone/their-model")
    assert config_json(unnamed).values["max_position_embeddings"] == 8192  # its max_model_len
    made = config_json(published("log-017", model_config=short, model="someone/their-model", max_model_len=None))
    assert "max_model_len" in made.assumed
    assert any("4,096 assumed" in note for note in made.notes)


def test_a_familys_rotary_scaling_is_there() -> None:
    """Gemma 3 from 4B up: 131,072 positions, scaled linearly by 8; its table of sines is half a GiB."""
    text = config_json(published("log-008")).values["text_config"]
    assert (text["max_position_embeddings"], text["rope_scaling"]["factor"]) == (131072, 8.0)


@pytest.mark.parametrize(
    ("method", "model", "quant_method", "form"),
    [
        ("fp8", "meta-llama/Llama-3.1-8B-Instruct", "fp8", None),
        ("fp8", "Qwen/Qwen3-8B-FP8", "fp8", None),
        ("fp8", "RedHatAI/Llama-3.1-8B-FP8-dynamic", "compressed-tensors", "float-quantized"),
        ("gptq_marlin", "RedHatAI/Llama-3.1-8B-quantized.w4a16", "gptq", None),
        ("compressed-tensors", "RedHatAI/Llama-3.1-8B-quantized.w8a8", "compressed-tensors", "int-quantized"),
        ("compressed-tensors", "RedHatAI/Llama-3.1-8B-quantized.w4a16", "compressed-tensors", "pack-quantized"),
        ("awq", "TechxGenus/DeepSeek-Coder-V2-Lite-Instruct-AWQ", "awq", None),
        ("awq-4bit", "cyankiwi/gemma-4-31B-it-AWQ-4bit", "compressed-tensors", "pack-quantized"),
        ("nvfp4", "nvidia/Gemma-4-31B-IT-NVFP4", "modelopt", None),
        ("nvfp4", "RedHatAI/Qwen3-8B-NVFP4", "compressed-tensors", "nvfp4-pack-quantized"),
        ("modelopt", "nvidia/Llama-3.3-70B-Instruct-FP8", "modelopt", None),
        ("modelopt_fp4", "nvidia/Llama-3.3-70B-Instruct-FP4", "modelopt", None),
        ("compressed-tensors", "zai-org/GLM-4.5-Air-FP8", "compressed-tensors", "float-quantized"),
        ("compressed-tensors", "cpatonn/Qwen3-14B-AWQ-8bit", "compressed-tensors", "pack-quantized"),
        ("compressed_tensors", "RedHatAI/Llama-3.1-8B-quantized.w4a16", "compressed-tensors", "pack-quantized"),
        ("moe_wna16", "Qwen/Qwen3-30B-A3B-GPTQ-Int4", "gptq", None),
        ("moe_wna16", "someone/Qwen3-30B-A3B-AWQ", "awq", None),
        ("mxfp4", "openai/gpt-oss-20b", "mxfp4", None),
        (None, "Qwen3.6-27B-AutoRound", "auto-round", None),
    ],
)
def test_the_engines_word_and_the_name_give_the_publishers_form(
    method: str | None, model: str, quant_method: str, form: str | None
) -> None:
    row = published("log-017", quantization=method, model=model)
    made, _, assumed = quantization_config(row, Config({}))
    assert made is not None
    assert (made["quant_method"], made.get("format")) == (quant_method, form)
    assert assumed == (method is None or model.startswith(("cyankiwi/", "nvidia/Gemma")))


@pytest.mark.parametrize(
    ("model", "bits"),
    [
        ("Qwen/Qwen2.5-72B-Instruct-GPTQ-Int8", 8), ("Qwen/Qwen2.5-72B-Instruct-GPTQ-Int4", 4),
        ("someone/Llama-3.1-8B-GPTQ-8bit", 8), ("someone/Llama-3.1-8B-gptq-3-bit", 3),
        ("TheBloke/Llama-2-7B-GPTQ", 4), ("someone/Yi-1.5-34B-GPTQ", 4),
    ],
)  # fmt: skip
def test_a_name_gives_the_bits(model: str, bits: int) -> None:
    made, _, _ = quantization_config(published("log-017", quantization="gptq_marlin", model=model), Config({}))
    assert (made or {})["bits"] == bits


def test_modelopts_fp8_is_no_four_bits() -> None:
    """Both are `modelopt` to the engine; the name tells them apart."""
    rows = [
        published("log-017", quantization="modelopt", model=f"nvidia/Llama-3.1-8B-{form}") for form in ("FP8", "NVFP4")
    ]
    made = [quantization_config(row, Config({}))[0] or {} for row in rows]
    assert [one["quant_algo"] for one in made] == ["FP8", "NVFP4"]


@pytest.mark.parametrize(
    ("model", "tower", "name"),
    [
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-8B", False, "LlamaForCausalLM"),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", False, "Qwen2ForCausalLM"),
        ("deepseek-ai/DeepSeek-R1", False, "DeepseekV3ForCausalLM"),
        ("microsoft/Phi-3.5-MoE-instruct", False, "PhiMoEForCausalLM"),
        ("microsoft/Phi-3.5-mini-instruct", False, "Phi3ForCausalLM"),
        ("Qwen/Qwen3-Coder-30B-A3B-Instruct", False, "Qwen3MoeForCausalLM"),
        ("Qwen/Qwen3-Coder-Next", False, "Qwen3NextForCausalLM"),
        ("Qwen/Qwen3-VL-30B-A3B-Instruct", True, "Qwen3VLMoeForConditionalGeneration"),
        ("Qwen/Qwen3-VL-8B-Instruct", True, "Qwen3VLForConditionalGeneration"),
        ("CohereForAI/c4ai-command-r7b-12-2024", False, "Cohere2ForCausalLM"),
        ("CohereForAI/c4ai-command-r-08-2024", False, "CohereForCausalLM"),
    ],
)
def test_the_more_particular_name_wins(model: str, tower: bool, name: str) -> None:
    row = published("log-017", model=model, family="", model_config={"hidden_size": 64, "has_vision_tower": tower})
    assert config_json(row).values["architectures"] == [name]


@pytest.mark.parametrize("model_type", ["llama", "gemma3"])
@pytest.mark.parametrize("absent", [{}, {"dtype": None}, {"torch_dtype": None}])
def test_a_dtype_that_a_config_does_not_say_is_the_rows_else_an_assumption(
    model_type: str, absent: dict[str, None]
) -> None:
    whole = {"model_type": model_type, "hidden_size": 64, **absent}
    assert config_json(published("log-017", model_config=whole, dtype="half")).values["torch_dtype"] == "float16"
    made = config_json(published("log-017", model_config=whole, dtype=None))
    assert made.values["torch_dtype"] == "bfloat16"
    assert "bfloat16 assumed" in made.notes[0]
    short = config_json(published("log-017", model_config={**LLAMA, **absent}))
    assert short.values["torch_dtype"] == "bfloat16"


def test_fp8_blocks_only_where_the_name_says_a_checkpoint() -> None:
    """`--quantization fp8` on a 16-bit checkpoint has one scale a tensor; Qwen's and DeepSeek's files have blocks."""
    online, _, _ = quantization_config(published("log-017", quantization="fp8"), Config({}))
    stored, _, _ = quantization_config(published("log-017", quantization="fp8", model="Qwen/Qwen3-8B-FP8"), Config({}))
    assert "weight_block_size" not in (online or {})
    assert (stored or {})["weight_block_size"] == [128, 128]


def test_towers_and_routers_are_left_at_16_bit() -> None:
    row = published("log-017", quantization="compressed-tensors", model="RedHatAI/x-quantized.w8a8")
    made, _, _ = quantization_config(row, Config({"vision_config": {}, "text_config": {"num_experts": 8}}))
    assert made is not None
    assert made["ignore"][0] == "lm_head"
    assert any("vision_tower" in name for name in made["ignore"])
    assert any("router" in name for name in made["ignore"])


def test_groups_divide_every_layer() -> None:
    """DeepSeek-V2-Lite: 10,944 = 171 x 64 inputs of its dense layer."""
    row = published("log-017", quantization="awq", model="TechxGenus/DeepSeek-Coder-V2-Lite-Instruct-AWQ")
    lite = {"hidden_size": 2048, "intermediate_size": 10944, "moe_intermediate_size": 1408}
    for values, size in ((lite, 64), ({"hidden_size": 4096, "intermediate_size": 14336}, 128)):
        made, _, _ = quantization_config(row, Config(values))
        assert (made or {})["group_size"] == size


def test_names_are_written_as_each_format_has_them() -> None:
    def left(method: str, model: str) -> Any:
        made, _, _ = quantization_config(published("log-017", quantization=method, model=model), Config(towers))
        return (made or {}).get("ignore", (made or {}).get("modules_to_not_convert"))

    towers: dict[str, Any] = {"vision_config": {}}
    assert "re:.*vision_tower.*" in left("compressed-tensors", "RedHatAI/x-quantized.w8a8")
    assert "*vision_tower*" in left("nvfp4", "nvidia/x-NVFP4")
    assert "vision_tower" in left("awq", "x-AWQ")
    assert "*self_attn*" in left("nvfp4", "nvidia/Gemma-4-31B-IT-NVFP4")


def test_gpt_oss_is_mxfp4_also_where_the_row_does_not_say_so() -> None:
    row = published("log-065")
    assert row.quantization is None
    made, notes, assumed = quantization_config(row, config_json(row))
    assert made is not None
    assert made["quant_method"] == "mxfp4"
    assert "mxfp4" in notes[0]
    assert not assumed


@pytest.mark.parametrize(
    ("method", "model"), [("compressed-tensors", "someone/their-model"), ("secret-4bit", "someone/their-model")]
)
def test_a_quantization_that_nobody_knows_is_named(method: str, model: str) -> None:
    with pytest.raises(Unknown, match=method):
        quantization_config(published("log-017", quantization=method, model=model), Config({}))
