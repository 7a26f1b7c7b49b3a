"""Run by the engine's own interpreter: real engines one after the other in one process, and the pool of each.

In: a JSON list of {name, space (GiB), arguments of vllm.LLM} on standard input. Out: one JSON line an engine.
"""

import gc
import json
import os
import sys

os.environ |= {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
}
asked = json.loads(sys.stdin.read())
out = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # whatever a library prints is no result

from vllm import LLM  # type: ignore[attr-defined]  # noqa: E402
from vllm.v1.core.kv_cache_utils import get_max_concurrency_for_kv_cache_config  # noqa: E402

for one in asked:
    os.environ["VLLM_CPU_KVCACHE_SPACE"] = str(one["space"])
    llm = LLM(dtype="bfloat16", enforce_eager=True, max_num_seqs=2, disable_log_stats=True, **one["arguments"])
    pool = llm.llm_engine.engine_core.engine_core.scheduler.kv_cache_config
    said = {
        "name": one["name"],
        "blocks": pool.num_blocks,
        "block_bytes": max(len(g.layer_names) * g.kv_cache_spec.page_size_bytes for g in pool.kv_cache_groups),
        "groups": len(pool.kv_cache_groups),
        "block_size": llm.llm_engine.vllm_config.cache_config.block_size,
        "concurrency": get_max_concurrency_for_kv_cache_config(llm.llm_engine.vllm_config, pool),
    }
    out.write(json.dumps(said) + "\n")
    out.flush()
    del llm, pool
    gc.collect()
