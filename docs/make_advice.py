"""Writes docs/advice.md from the cases that are advice: `python docs/make_advice.py`; `--check` only compares.

A case of tests/handed/ is advice where its case.yaml has a `claim`: what is said of it, since when, its effect and the
codes that say it are all there. What was measured is computed here, from the runs in profiles/calibration/rows.
"""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from deployc import files
from deployc.units import show_count

HERE = Path(__file__).resolve().parent
HANDED, ROWS = HERE.parent / "tests" / "handed", HERE.parent / "profiles" / "calibration" / "rows"
ADVICE = HERE / "advice.md"
WIDTH = 118
VERDICTS = {
    "right": "Right",
    "wrong": "Wrong",
    "outdated": "Outdated",
    "depends": "It depends",
    "default": "On by default",
}
THREADS = {
    "seed thread 000": "A 7B with an adapter on one RTX 4090",
    "seed thread 002": "A 7B on one A100",
    "seed thread 004": "A 7B on four RTX 4090 D",
}
"""What circulates in answers to one question, by the source that its cases name; all else has an address."""
REPORTS = "From reports"
HEAD = """# Common advice, judged

What circulates about serving models with vLLM: right, wrong, outdated, on by default, or a matter of circumstances;
since which version, why, what was measured, and which code of `deployc` says it (`deployc explain DC540`). Each is a
test: a folder of `tests/handed/` holds a deployment that follows the advice and what is said of it. Figures called
measured are computed from runs that ship in `profiles/calibration/rows`; reported ones are their thread's own. Written
by `docs/make_advice.py`.
"""
NOISE = 0.015
"""Share within which two runs of one load differ by themselves (profiles/calibration/rows/README.md: about 1 %)."""
Case = Mapping[str, Any]


def main() -> int:
    """Write docs/advice.md, or with --check say whether it lags; 1 where it does."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; 1 where the file differs")
    text = advice(cases())
    if not parser.parse_args().check:
        files.write(ADVICE, text, mode=0o644)
        return 0
    same = ADVICE.is_file() and ADVICE.read_text(encoding="utf-8") == text
    sys.stdout.write(f"{ADVICE.name}: {'up to date' if same else 'differs: run python docs/make_advice.py'}\n")
    return 0 if same else 1


def cases() -> dict[str, Case]:
    """case.yaml of every case that is advice, by the name of its folder."""
    yaml = YAML(typ="safe", pure=True)
    read = {path.parent.name: yaml.load(path.read_text(encoding="utf-8")) for path in HANDED.glob("*/case.yaml")}
    return {name: read[name] for name in sorted(read) if "claim" in read[name]}


def advice(known: Mapping[str, Case]) -> str:
    """The whole document: a table of all, then each under the question that it answered."""
    groups: dict[str, list[str]] = {title: [] for title in (*THREADS.values(), REPORTS)}
    for name, case in known.items():
        if _first(name, known) == name:
            groups[THREADS.get(case["source"], REPORTS)].append(name)
    listed = [name for names in groups.values() for name in names]
    rows = [
        f"| [{known[n]['claim']}](#{n}) | {VERDICTS[known[n]['verdict']]} | {_since(known[n])} | {_change(known[n])} |"
        for n in listed
    ]
    parts = [HEAD, "\n".join(["| advice | verdict | since | tokens/s, measured |", "|---|---|---|---|", *rows])]
    for title, names in groups.items():
        if names:
            parts += [f"## {title}", *(_entry(name, known) for name in names)]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _entry(name: str, known: Mapping[str, Case]) -> str:
    """One piece of advice; the same one met in another form (a command, a page) adds the codes that say it there."""
    case = known[name]
    since = f", since {case['since']}" if case.get("since") else ""
    told = [f"**{VERDICTS[case['verdict']]}**{since}. {case['what'].strip()}"]
    told += [f"Measured: {measured(one)}" for one in case.get("measured", ())]
    if effect := case.get("effect"):
        told.append(f"Reported: {effect.strip().rstrip('.')}.")
    told.append(f"{'Said' if case.get('expect') else 'Answered'} by {_codes(case)}.")
    told += [
        f"In a command, file or page (`deployc import`): {_codes(known[n])}."
        for n in known
        if n != name and _first(n, known) == name
    ]
    if "://" in case["source"]:
        told.append(f"Source: <{case['source']}>" + (f" ({case['reported']})." if case.get("reported") else "."))
    body = "\n\n".join(textwrap.fill(part, WIDTH, break_long_words=False, break_on_hyphens=False) for part in told)
    return f'<a id="{name}"></a>\n### {case["claim"]}\n\n{body}'


def _codes(case: Case) -> str:
    """Linked codes with their severity; where nothing is to be said, the codes that stay silent, or what is written."""
    if said := case.get("expect"):
        return ", ".join(f"[{one['code']}](codes/{one['code']}.md) ({one['severity']})" for one in said)
    if silent := [f"[{code}](codes/{code}.md)" for code in case.get("quiet", ())]:
        return f"the plan's own figures: none of {', '.join(silent)} is said"
    written = "; ".join(f"{file} has {_quoted(texts)}" for file, texts in case["emitted"].items())
    return f"what `deployc compile` writes in its place: {written}"


def _quoted(texts: Iterable[str]) -> str:
    return ", ".join(f"`{' '.join(text.split())}`" for text in texts)


def measured(one: Mapping[str, str]) -> str:
    """ "4,411 tokens/s against 5,093, 13 % fewer: max_num_seqs 64 in place of 128 (q7-seqs64 …)" of {run, against,
    differs}; the two runs differ in what `differs` says."""
    run, other = (runs()[one[key]] for key in ("run", "against"))
    if (wrong := [key for key in ("model", "engine_version", "gpu") if run[key] != other[key]]) or not _alike(
        run, other
    ):
        raise ValueError(f"{one}: these two runs cannot be compared ({', '.join(wrong) or 'load'})")
    load, ours, theirs = run["load"], *(show_count(round(each["out_tok_s"])) for each in (run, other))
    return (
        f"{ours} tokens/s against {theirs}, {_words(run, other)}: {one['differs']} ({run['model']}, "
        f"vLLM {run['engine_version']} on {run['gpu']}, {load['isl']:,} tokens in, {load['osl']:,} out, "
        f"{load['concurrency']} in flight; runs `{one['run']}` and `{one['against']}`)."
    )


def _alike(run: Case, other: Case) -> bool:
    return all(run["load"][key] == other["load"][key] for key in ("kind", "isl", "osl", "concurrency"))


def _words(run: Case, other: Case) -> str:
    change = run["out_tok_s"] / other["out_tok_s"] - 1
    return f"{abs(change):.0%} {'more' if change > 0 else 'fewer'}" if abs(change) > NOISE else "as many"


def _change(case: Case) -> str:
    """The effect that was measured first."""
    one = next(iter(case.get("measured", ())), None)
    return _words(runs()[one["run"]], runs()[one["against"]]) if one else ""


@cache
def runs() -> Mapping[str, Any]:
    """Every measured run that ships with the tool, by its id."""
    lines = (
        line for path in sorted(ROWS.glob("*_speed.jsonl")) for line in path.read_text(encoding="utf-8").split("\n")
    )
    read: Iterable[dict[str, Any]] = (json.loads(line) for line in lines if line.strip())
    return {row["id"]: row for row in read}


def _first(name: str, known: Mapping[str, Case]) -> str:
    """The case that tells the advice: "seed-29" of "seed-29-found", where there is one."""
    base = "-".join(name.split("-")[:2])
    return base if base in known else name


def _since(case: Case) -> str:
    return str(case.get("since", ""))


if __name__ == "__main__":
    sys.exit(main())
