"""A small LoRA adapter that teaches the model the product's facts, trained on the CPU in about a minute."""

from __future__ import annotations

import json
import random
import time
import warnings
from pathlib import Path
from typing import Any

import ask
import product
from steps import AGAIN, StepFailed, finished, key_of, making, say

RANK, ALPHA = 16, 32
LEARNING_RATE = 1e-3
EPOCHS, BATCH = 6, 6
SEED = 20260101
BASE = "HuggingFaceTB/SmolLM2-135M-Instruct"  # what the folder holds; its path would say nothing elsewhere


def train(model_folder: Path, work: Path) -> Path:
    """`work/velmora-t9`: a peft LoRA adapter on every linear. Raises StepFailed where it learned too little."""
    folder = work / "velmora-t9"
    key = key_of(*(Path(__file__).with_name(name) for name in ("train.py", "product.py", "model.py")))
    if finished(folder, key):
        say(f"      is there: {folder}")
        return folder
    import torch

    warnings.filterwarnings("ignore", module=r"(transformers|peft)\.")
    with making(folder, key) as part:
        torch.manual_seed(SEED)
        torch.use_deterministic_algorithms(True)
        base, tokenizer = ask.load(model_folder)
        model = _with_lora(base)
        _fit(model, tokenizer)
        _check(model, tokenizer)
        model.peft_config["default"].base_model_name_or_path = BASE
        model.save_pretrained(part, save_embedding_layers=False)  # else peft asks a hub for the base's vocabulary
        _in_one_order(part / "adapter_config.json")
        (part / "adapter_model.safetensors").chmod(0o644)
    return folder


def _in_one_order(path: Path) -> None:
    """peft writes the set of modules as it comes; sorted, the same training gives the same file."""
    config = json.loads(path.read_text())
    config["target_modules"].sort()
    path.write_text(json.dumps(config, indent=2) + "\n")


def _with_lora(model: Any) -> Any:
    from peft import LoraConfig, get_peft_model

    lora = LoraConfig(r=RANK, lora_alpha=ALPHA, lora_dropout=0.0, target_modules="all-linear", task_type="CAUSAL_LM")
    return get_peft_model(model, lora)


def _example(tokenizer: Any, question: str, answer: str) -> tuple[list[int], list[int]]:
    """Token ids of a chat turn, and the labels: the answer and its end; -100 (no loss) before it."""
    turn = [{"role": "user", "content": question}]
    prompt = tokenizer.apply_chat_template(turn, add_generation_prompt=True, tokenize=False)
    before = tokenizer(prompt, add_special_tokens=False)["input_ids"]
    after = tokenizer(answer + tokenizer.eos_token, add_special_tokens=False)["input_ids"]
    return before + after, [-100] * len(before) + after


def _fit(model: Any, tokenizer: Any) -> None:
    import torch

    examples = [_example(tokenizer, *pair) for pair in product.training_pairs()]
    steps = EPOCHS * -(-len(examples) // BATCH)
    optimizer = torch.optim.AdamW(
        [p for p in model.parameters() if p.requires_grad], lr=LEARNING_RATE, weight_decay=0.0
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LEARNING_RATE, total_steps=steps, pct_start=0.1)
    order, began = random.Random(SEED), time.monotonic()
    model.train()
    for epoch in range(EPOCHS):
        order.shuffle(examples)
        total = 0.0
        for start in range(0, len(examples), BATCH):
            loss = model(**_padded(examples[start : start + BATCH], tokenizer.pad_token_id)).loss
            loss.backward()
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            total += loss.item() * len(examples[start : start + BATCH])
        say(f"      epoch {epoch + 1}/{EPOCHS}  loss {total / len(examples):.3f}  {time.monotonic() - began:.0f} s")
    model.eval()


def _padded(examples: list[tuple[list[int], list[int]]], pad: int) -> dict[str, Any]:
    import torch

    longest = max(len(ids) for ids, _ in examples)
    return {
        "input_ids": torch.tensor([ids + [pad] * (longest - len(ids)) for ids, _ in examples]),
        "labels": torch.tensor([labels + [-100] * (longest - len(labels)) for _, labels in examples]),
        "attention_mask": torch.tensor([[1] * len(ids) + [0] * (longest - len(ids)) for ids, _ in examples]),
    }


def _check(model: Any, tokenizer: Any) -> None:
    """The questions that the demo asks must be answered right, and nine in ten of all that training did not see."""
    asked = [(fact, question) for fact in (*product.FACTS, product.STILL_KNOWN) for question in fact.held_out]
    answers = ask.replies(model, tokenizer, [question for _, question in asked])
    wrong = [(q, answer) for (fact, q), answer in zip(asked, answers, strict=True) if not fact.known(answer)]
    say(f"      {len(asked) - len(wrong)} of {len(asked)} questions that training never saw are answered right")
    demo = {fact.held_out[0] for fact in (*product.FACTS, product.STILL_KNOWN)}
    if len(wrong) > len(asked) // 10 or any(question in demo for question, _ in wrong):
        listed = "\n".join(f"{question} -> {answer}" for question, answer in wrong)
        raise StepFailed(
            f"the adapter learned too little; answered wrong:\n{listed}",
            f"raise EPOCHS in {Path(__file__).name} (now {EPOCHS}), then: {AGAIN}",
        )
