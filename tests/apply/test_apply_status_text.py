"""A status as people read it."""

from __future__ import annotations

from deployc.apply.observe import Status
from deployc.cli.status import text


def test_a_serving_deployment() -> None:
    status = Status("serving", digest="sha256:ab", entry="3-ab", since="2026-01-02T03:04:05Z", url="http://127.0.0.1:8000",
                    served_name="qa", engine="0.32.0", pid=12, supervisor=11, resident_bytes=3 * 2**30,
                    log="/s/ab.log")  # fmt: skip
    assert text("qa", status).splitlines() == [
        "qa",
        "  condition  serving",
        "  url        http://127.0.0.1:8000",
        "  model      qa",
        "  engine     vllm 0.32.0",
        "  since      2026-01-02T03:04:05Z",
        "  memory     3.00 GiB resident",
        "  process    12, supervised by 11",
        "  applied    3-ab",
        "  digest     sha256:ab",
        "  log        /s/ab.log",
    ]


def test_nothing_and_a_failure_with_its_last_lines() -> None:
    assert text("qa", Status("nothing")) == "qa\n  condition  nothing"
    failed = text("qa", Status("failed", reason="exited with code 1", restarts=3, log_tail=("one", "two")))
    assert failed.endswith("  reason     exited with code 1\n  restarts   3\n    one\n    two")
