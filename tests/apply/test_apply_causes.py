"""Texts that engines print, and the causes they are recognised as."""

from __future__ import annotations

import pytest

from deployc.apply import causes

SEEN = [
    ("DC650", "OSError: [Errno 98] Address already in use"),
    ("DC651", "ValueError: Free memory on device cuda:0 (3.1/23.5 GiB) on startup is less than desired GPU memory "
              "utilization (0.92, 21.62 GiB). Decrease GPU memory utilization or reduce GPU memory used by others."),
    ("DC651", "ValueError: Available memory on node 0 (3.00/23.43 GiB) on startup is less than desired CPU memory "
              "utilization (0.92, 21.56 GiB)."),
    ("DC652", "ValueError: To serve at least one request with the model's max seq len (32768), (1.75 GiB KV cache is "
              "needed, which is larger than the available KV cache memory (0.84 GiB)."),
    ("DC652", "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`"),
    ("DC653", "  Value error, User-specified max_model_len (131072) is greater than the derived max_model_len "
              "(max_position_embeddings=32768 or model_max_length=None in model's config.json)."),
    ("DC654", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.02 GiB."),
    ("DC654", "RuntimeError: CUDA out of memory occurred when warming up sampler with 256 dummy requests."),
    ("DC655", "vllm serve: error: unrecognized arguments: --swap-space 4"),
    ("DC655", "vllm serve: error: argument --max-model-len: invalid human_readable_int value: 'x'"),
    ("DC656", "ValueError: Model architectures ['FooForCausalLM'] are not supported for now."),
    ("DC656", "ValueError: torch.bfloat16 is not supported for quantization method awq. Supported dtypes: [float16]"),
    ("DC656", "Value error, Quantization method specified in the model config (compressed-tensors) does not match the "
              "quantization method specified in the `quantization` argument (gptq)."),
    ("DC656", "ValueError: The quantization method fp8 is not supported for the current GPU. Minimum capability: 89."),
    ("DC656", "Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your Tesla T4 GPU has 7.5."),
    ("DC657", "Cannot access gated repo for url …/resolve/main/config.json."),
    ("DC657", "huggingface_hub.errors.LocalEntryNotFoundError: Cannot find an appropriate cached snapshot folder"),
    ("DC658", "RuntimeError: Cannot find any model weights with `/models/qa`"),
    ("DC658", "FileNotFoundError: [Errno 2] No such file or directory: '/x/template.jinja'"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "line"), SEEN)
def test_a_text_is_recognised_among_what_follows_from_it(code: str, line: str) -> None:
    lines = ["INFO starting", line, "RuntimeError: Engine core initialization failed. See root cause above."]
    found = causes.find(lines, "exited with code 1")
    assert found is not None and found.code == code and found.detail == line.strip() and found.fix


@pytest.mark.parametrize(("code", "ending"), [("DC659", "killed by SIGKILL"), ("DC649", "killed by SIGILL")])
def test_an_ending_is_recognised_where_no_text_is(code: str, ending: str) -> None:
    found = causes.find(["INFO loading"], ending)
    assert found is not None and found.code == code and ending in found.detail


def test_what_is_not_recognised_is_not_guessed() -> None:
    assert causes.find(["INFO Loading weights took 3.1 seconds", "KeyError: 'layers'"], "exited with code 1") is None


def test_codes_are_one_a_cause() -> None:
    rows = (*causes.CAUSES, *causes.ENDINGS)
    assert len({row.code for row in rows}) == len(rows) and all(row.summary and row.fix for row in rows)
