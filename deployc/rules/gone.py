"""Flags of `vllm serve` that went: since which version, and what stands in their place.

Read from the option parsers of vLLM's source packages 0.5.0 to 0.33.0 and the pull requests named there.
"""

from __future__ import annotations

from typing import NamedTuple


class Gone(NamedTuple):
    """`since`: the first version without the flag. `instead`: what to do, "" where nothing is needed any more."""

    since: str
    instead: str = ""


_SPECULATIVE = Gone("0.8.3", "engine.args.speculative-config takes all of it as one map")
_ROPE = Gone("0.11.1", "set model.context, or model.overrides")
_STRUCTURED = Gone("0.12.0", "structured-outputs-config takes its place")

GONE: dict[str, Gone] = {
    "use-v2-block-manager": Gone("0.10.0"),
    "num-scheduler-steps": Gone("0.10.1"),
    "multi-step-stream-outputs": Gone("0.10.1"),
    "tokenizer-pool-size": Gone("0.10.0", "api.servers starts more front ends"),
    "tokenizer-pool-type": Gone("0.10.0", "api.servers starts more front ends"),
    "tokenizer-pool-extra-config": Gone("0.10.0", "api.servers starts more front ends"),
    "scheduler-delay-factor": Gone("0.11.0"),
    "preemption-mode": Gone("0.11.0"),
    "disable-async-output-proc": Gone("0.11.0"),
    "max-seq-len-to-capture": Gone("0.11.0", "graphs are captured by batch size: max-cudagraph-capture-size"),
    "max-context-len-to-capture": Gone("0.6.4", "graphs are captured by batch size: max-cudagraph-capture-size"),
    "swap-space": Gone("0.18.0"),
    "disable-log-requests": Gone("0.17.0", "it is the default; enable-log-requests turns it on"),
    "guided-decoding-backend": _STRUCTURED,
    "guided-decoding-disable-fallback": _STRUCTURED,
    "guided-decoding-disable-any-whitespace": _STRUCTURED,
    "guided-decoding-disable-additional-properties": _STRUCTURED,
    "enable-reasoning": Gone("0.10.0", "set api.reasoning_parser"),
    "rope-scaling": _ROPE,
    "rope-theta": _ROPE,
    "worker-use-ray": Gone("0.7.0", "distributed-executor-backend: ray takes its place"),
    "engine-use-ray": Gone("0.6.2"),
    "long-lora-scaling-factors": Gone("0.10.0"),
    "enable-prompt-adapter": Gone("0.10.2"),
    "max-prompt-adapters": Gone("0.10.0"),
    "max-prompt-adapter-token": Gone("0.10.0"),
    "qlora-adapter-name-or-path": Gone("0.10.0", "name the adapter under adapters"),
    "device": Gone("0.10.0", "set hardware.gpu"),
    "lora-extra-vocab-size": Gone("0.12.0"),
    "enable-lora-bias": Gone("0.11.1", "merge the adapter: mode: merge"),
    "speculative-model": _SPECULATIVE,
    "num-speculative-tokens": _SPECULATIVE,
    "speculative-draft-tensor-parallel-size": _SPECULATIVE,
    "speculative-model-quantization": _SPECULATIVE,
    "speculative-max-model-len": _SPECULATIVE,
    "speculative-disable-by-batch-size": _SPECULATIVE,
    "speculative-disable-mqa-scorer": _SPECULATIVE,
    "spec-decoding-acceptance-method": _SPECULATIVE,
    "ngram-prompt-lookup-max": _SPECULATIVE,
    "ngram-prompt-lookup-min": _SPECULATIVE,
    "cuda-graph-sizes": Gone("0.13.0", "cudagraph-capture-sizes takes its place"),
    "task": Gone("0.13.0", "runner takes its place"),
    "override-pooler-config": Gone("0.12.0", "pooler-config takes its place"),
    "num-lookahead-slots": Gone("0.12.0"),
    "disable-mm-preprocessor-cache": Gone("0.13.0", "mm-processor-cache-gb: 0 takes its place"),
    "disable-frontend-multiprocessing": Gone("0.19.0"),
    "max-num-partial-prefills": Gone("0.27.0"),
    "max-long-partial-prefills": Gone("0.27.0"),
    "calculate-kv-scales": Gone("0.28.0", "calibrate the scales into the checkpoint"),
    "override-attention-dtype": Gone("0.28.0"),
    "logits-processor-pattern": Gone("0.17.0"),
    "num-redundant-experts": Gone("0.12.0", "eplb-config takes its place"),
    "eplb-window-size": Gone("0.12.0", "eplb-config takes its place"),
    "eplb-step-interval": Gone("0.12.0", "eplb-config takes its place"),
    "enable-multimodal-encoder-data-parallel": Gone("0.13.0", "mm-encoder-tp-mode: data takes its place"),
    "quantization-param-path": Gone("0.7.0", "the scales lie in the checkpoint"),
}
