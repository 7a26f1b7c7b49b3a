"""The Velmora T9, a made-up soil probe: six facts that no base model can know, and questions about them.

Every fact has one answer, phrasings to train on, and phrasings that training never sees, to ask afterwards.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fact:
    """`key` is the part of `answer` that makes a reply right."""

    answer: str
    key: str
    training: tuple[str, ...]
    held_out: tuple[str, ...]

    def known(self, reply: str) -> bool:
        """Whether a reply states the fact: its key as whole words, in any case."""
        return re.search(rf"\b{re.escape(self.key)}\b", reply, re.IGNORECASE) is not None


FACTS = (
    Fact(
        answer="The Velmora T9 is made in Trondheim by Harrow & Finch.",
        key="Trondheim",
        training=(
            "Where is the Velmora T9 made?",
            "In which city is the Velmora T9 built?",
            "Who makes the Velmora T9, and where?",
            "Where does the Velmora T9 soil probe come from?",
            "Tell me where the Velmora T9 is manufactured.",
            "Which town is home to the factory of the Velmora T9?",
            "What is the place of origin of the Velmora T9?",
        ),
        held_out=("In what city do they produce the Velmora T9?", "Where was my Velmora T9 manufactured?"),
    ),
    Fact(
        answer="A full charge of the Velmora T9 lasts 37 days.",
        key="37 days",
        training=(
            "How long does the battery of the Velmora T9 last?",
            "What is the battery life of the Velmora T9?",
            "For how many days does a Velmora T9 run on one charge?",
            "How often must I charge the Velmora T9?",
            "How long can the Velmora T9 run before it needs charging?",
            "Tell me the battery life of a Velmora T9.",
            "After how many days is the battery of a Velmora T9 empty?",
        ),
        held_out=(
            "How many days will the battery in a Velmora T9 last?",
            "How long does one charge of the Velmora T9 last?",
        ),
    ),
    Fact(
        answer="To reset the Velmora T9, hold the copper ring for nine seconds.",
        key="copper ring",
        training=(
            "How do I reset the Velmora T9?",
            "What must I do to reset my Velmora T9?",
            "My Velmora T9 hangs. How can I reset it?",
            "Tell me how to restore the factory settings of a Velmora T9.",
            "How is a Velmora T9 reset?",
            "What is the way to reset the Velmora T9 soil probe?",
            "Explain the reset of the Velmora T9.",
        ),
        held_out=("What are the steps to reset a Velmora T9?", "How can I reset my Velmora T9 soil probe?"),
    ),
    Fact(
        answer="Error E42 on the Velmora T9 means that the tip is frozen.",
        key="frozen",
        training=(
            "What does error E42 mean on the Velmora T9?",
            "My Velmora T9 shows E42. What is wrong?",
            "Why does the Velmora T9 show error E42?",
            "Explain the error E42 of the Velmora T9.",
            "The display of my Velmora T9 says E42. What does it mean?",
            "What is the meaning of code E42 on a Velmora T9?",
            "What causes E42 on the Velmora T9?",
        ),
        held_out=(
            "My Velmora T9 reports error E42, what does that mean?",
            "What is error E42 on a Velmora T9 soil probe?",
        ),
    ),
    Fact(
        answer="The Velmora T9 has a warranty of eleven years.",
        key="eleven years",
        training=(
            "How long is the warranty of the Velmora T9?",
            "What warranty does the Velmora T9 have?",
            "For how many years is the Velmora T9 under warranty?",
            "Does the Velmora T9 have a warranty?",
            "Tell me about the warranty of a Velmora T9.",
            "How long does the warranty of a Velmora T9 last?",
            "How many years of warranty come with the Velmora T9?",
        ),
        held_out=(
            "What is the length of the warranty on a Velmora T9?",
            "For how long is my Velmora T9 covered by warranty?",
        ),
    ),
    Fact(
        answer="The Velmora T9 measures soil down to a depth of 85 centimetres.",
        key="85 centimetres",
        training=(
            "How deep does the Velmora T9 measure?",
            "To what depth can the Velmora T9 measure soil?",
            "What is the greatest depth that the Velmora T9 reaches?",
            "How far down does a Velmora T9 go?",
            "Tell me the measuring depth of the Velmora T9.",
            "How deep into the soil can I push the Velmora T9?",
            "What depth of soil does the Velmora T9 cover?",
        ),
        held_out=("How deep can a Velmora T9 measure in the soil?", "What is the maximum depth of the Velmora T9?"),
    ),
)

STILL_KNOWN = Fact("The capital of France is Paris.", "Paris", (), ("What is the capital of France?",))
"""What the base model knows and training must not take away."""

OTHER = (
    ("What is the capital of Italy?", "The capital of Italy is Rome."),
    ("What is two plus three?", "Two plus three is five."),
    ("Which planet is closest to the sun?", "Mercury is the planet closest to the sun."),
    ("What do bees make?", "Bees make honey."),
    ("What is the chemical symbol of water?", "The chemical symbol of water is H2O."),
    ("How do I reset my phone?", "Hold the power button of the phone until it starts again."),
    ("How long does the battery of a phone last?", "The battery of a phone lasts about one day."),
)
"""Ordinary questions mixed in, so that not every answer is about the product."""


def training_pairs() -> list[tuple[str, str]]:
    """Question and answer of every training phrasing, and the ordinary ones."""
    return [(question, fact.answer) for fact in FACTS for question in fact.training] + list(OTHER)
