"""Run by the engine's own interpreter: real engines one after the other in one process, and what each answers.

In: a JSON list of {name, model, prompts, chat (or plain text), tokens, batched} on standard input. Out: one JSON line
an engine: {name, answers}.
"""

import gc
import json
import os
import sys

os.environ |= {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
}
asked = json.loads(sys.stdin.read())
out = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # whatever a library prints is no result

from vllm import LLM, SamplingParams  # type: ignore[attr-defined]  # noqa: E402

for one in asked:
    llm = LLM(
        one["model"], dtype="bfloat16", enforce_eager=True, max_num_seqs=2, max_model_len=256, disable_log_stats=True,
        max_num_batched_tokens=one["batched"],  # an engine is warmed up with as many: in fp8 seconds each on a CPU
    )  # fmt: skip
    greedy = SamplingParams(temperature=0, max_tokens=one["tokens"])
    if one["chat"]:
        conversations = [[{"role": "user", "content": prompt}] for prompt in one["prompts"]]
        done = llm.chat(conversations, greedy, use_tqdm=False)
    else:
        done = llm.generate(one["prompts"], greedy, use_tqdm=False)
    out.write(json.dumps({"name": one["name"], "answers": [answer.outputs[0].text for answer in done]}) + "\n")
    out.flush()
    del llm
    gc.collect()
