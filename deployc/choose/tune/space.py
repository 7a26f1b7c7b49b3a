"""The configurations that a file leaves open: formats and spread over each choice of cards, then how much at once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, get_args

from deployc.choose.decide import draft
from deployc.cost.capability import has_kernels, reads_fp8_kv
from deployc.cost.context import share_longer
from deployc.cost.parallel import undivided
from deployc.cost.weights.formats import scheme
from deployc.cost.written import written_count, written_flag
from deployc.spec.deploy import Deploy
from deployc.spec.model import Quantization
from deployc.spec.unsupported import NOT_YET
from deployc.types.choices import Choice, Choices
from deployc.types.facts import Facts, GpuFacts

OPEN: Mapping[str, tuple[str, str]] = {
    "weights": ("quantization.weights", ""),
    "kv_cache": ("quantization.kv_cache", "kv-cache-dtype"),
    "tensor": ("engine.parallel.tensor", "tensor-parallel-size"),
    "replicas": ("engine.parallel.replicas", ""),
    "max_model_len": ("", "max-model-len"),
    "max_num_seqs": ("", "max-num-seqs"),
    "max_num_batched_tokens": ("", "max-num-batched-tokens"),
}
"""What is searched over: the key of deploy.yaml that sets it, and the flag of `engine.args` that may."""
SHARES = (2, 4, 8)
"""Of the requests in flight on one engine: a half, a quarter, an eighth run at once, the others wait."""
SEQUENCES = (16, 32, 64, 128, 256, 512)
"""max_num_seqs under an open load."""
TOKENS = (1024, 2048, 4096, 8192, 16384)
"""max_num_batched_tokens."""
SELDOM = 0.001
"""Share of the requests that may be longer than a max_model_len that is tried."""


@dataclass(frozen=True, slots=True)
class Cards:
    """So many cards of one kind. `written`: their name for `hardware.gpu`; None where the file names them already.

    `price`: money for one card and hour; None where nobody stated it.
    """

    devices: tuple[GpuFacts, ...]
    written: str | None = None
    price: float | None = None

    @property
    def count(self) -> int:
        """How many."""
        return len(self.devices)

    @property
    def name(self) -> str:
        """What they are called, each kind once."""
        return "/".join(dict.fromkeys(card.name for card in self.devices))


@dataclass(frozen=True, slots=True)
class Candidate:
    """One configuration. `deploy` is the file as it would be with its cards, formats and sizes written into it."""

    number: int
    cards: Cards
    deploy: Deploy
    facts: Facts
    choices: Choices
    apart: int  # sizes that are not what `plan` would choose for the rest

    @property
    def loss(self) -> tuple[int, int]:
        """Bits that are taken from a weight, and whether the KV cache is rounded: what may cost quality."""
        own = scheme(self.choices)
        return (16 - own.bits if own else 0, int(self.choices.kv_cache_dtype.value != "auto"))

    @property
    def family(self) -> tuple[object, ...]:
        """Cards, formats and spread: what a rule that is no prediction looks at."""
        choices = self.choices
        return (
            id(self.cards), choices.weights.value, choices.kv_cache_dtype.value, choices.tensor_parallel_size.value,
            choices.replicas.value,
        )  # fmt: skip

    @property
    def engine(self) -> tuple[object, ...]:
        """All but the length of a request."""
        return (*self.family, self.choices.max_num_seqs.value, self.choices.max_num_batched_tokens.value)


def spelled(written: str) -> str | None:
    """The name in `OPEN` of a key or flag however it is written: "engine.args.max-num-seqs" is "max_num_seqs"."""
    last = written.strip().lstrip("-").rpartition(".")[2].replace("_", "-")
    for name, (key, flag) in OPEN.items():
        if last and last in (name.replace("_", "-"), key.rpartition(".")[2].replace("_", "-"), flag):
            return name
    return None


def fixed(deploy: Deploy, facts: Facts) -> dict[str, str]:
    """Which of `OPEN` the file fixes, and where: a value that is neither "auto" nor left out is the user's."""
    found = {}
    for name, (key, flag) in OPEN.items():
        section, _, last = key.rpartition(".")
        value: Any = deploy
        for part in (*section.split("."), last) if key else ():
            value = getattr(value, part)
        if key and deploy.written(key) and value != "auto":
            found[name] = deploy.because(key)
        elif flag and (by_flag := written_flag(deploy, facts, flag)) is not None:
            found[name] = by_flag[1]
    if "max_model_len" not in found and deploy.workload.max_context is not None:
        found["max_model_len"] = deploy.because("workload.max_context")
    return found


def released(deploy: Deploy, facts: Facts, free: Iterable[str]) -> Deploy:
    """The file without what it says of these names."""
    names = set(free)
    flags = {OPEN[name][1] for name in names} - {""}
    args = {key: value for key, value in deploy.engine.args.items() if facts.engine.canonical(key) not in flags}
    formats: dict[str, Any] = {name: "auto" for name in ("weights", "kv_cache") if name in names}
    spread: dict[str, Any] = {name: "auto" for name in ("tensor", "replicas") if name in names}
    return with_values(deploy, quantization=formats, parallel=spread, args=args)


def candidates(deploy: Deploy, facts: Facts, cards: Sequence[Cards], free: Iterable[str] = ()) -> Iterator[Candidate]:
    """All of them, those of one kind and number of cards together."""
    held = fixed(deploy, facts).keys() - set(free)
    bare, number = released(deploy, facts, free), 0
    for here in cards:
        there = replace(facts, devices=here.devices)
        hardware: dict[str, Any] = {"count": here.count}
        if here.written is not None:
            hardware |= {"gpu": here.written}
        on = with_values(bare, hardware=hardware)
        for weights, kv_cache, (tensor, replicas) in product(
            _weights(on, there, held), _kv_caches(on, there, held), _spreads(on, there, held)
        ):
            formats = {"weights": weights, "kv_cache": kv_cache}
            asked = with_values(on, quantization=formats, parallel={"tensor": tensor, "replicas": replicas})
            picked = "weights" not in held and weights != "none"
            if picked and not has_kernels(there, there.smallest, draft(asked, there)):
                continue
            for asks, choices, apart in _sizes(asked, there, held):
                yield Candidate(number, here, asks, there, choices, apart)
                number += 1


def accepted(key: str, names: Sequence[str]) -> list[str]:
    """The values of a key that this version does not refuse as "not supported yet"."""
    supported = NOT_YET[key][0] if key in NOT_YET else names
    return [name for name in names if name in supported]


def _weights(deploy: Deploy, facts: Facts, held: Iterable[str]) -> list[str]:
    """As they are, then with 8 bits. "checkpoint" is what "none" means of a quantized one. Fewer bits are for people to
    choose (choose/format.py, weights): what they lose hangs on the model."""
    if "weights" in held:
        return [deploy.quantization.weights]
    if facts.model.quantization:
        return ["none"]
    return accepted("quantization.weights", ("none", "fp8", "int8"))


def _kv_caches(deploy: Deploy, facts: Facts, held: Iterable[str]) -> list[str]:
    if "kv_cache" in held:
        return [deploy.quantization.kv_cache]
    names = accepted("quantization.kv_cache", get_args(Quantization.model_fields["kv_cache"].annotation))
    return [name for name in names if name == "auto" or reads_fp8_kv(facts)]


def _spreads(deploy: Deploy, facts: Facts, held: Iterable[str]) -> list[tuple[int, int]]:
    """Cards of one engine and how many engines; all cards are used where that can be."""
    count, parallel = len(facts.devices), deploy.engine.parallel
    sizes: Sequence[int] = [size for size in range(1, count + 1) if not undivided(facts.model.architecture, size)]
    if "tensor" in held:
        written = written_count(deploy, facts, OPEN["tensor"][1])
        sizes = [parallel.tensor] if isinstance(parallel.tensor, int) else [written.value] if written else sizes
    if isinstance(parallel.replicas, int):
        pairs = [(size, parallel.replicas) for size in sizes]
    else:
        pairs = [(size, count // size) for size in sizes]
    fitting = [(size, engines) for size, engines in pairs if engines and size * engines <= count]
    return [(size, engines) for size, engines in fitting if size * engines == count] or fitting


def _sizes(deploy: Deploy, facts: Facts, held: Iterable[str]) -> Iterator[tuple[Deploy, Choices, int]]:
    """How many sequences, tokens a step and tokens a request at once: the file that asks so, and what follows."""
    usual = draft(deploy, facts)
    for seqs in _sequences(deploy, usual, held):
        for tokens in _tokens(usual, seqs, held):
            args = dict(deploy.engine.args)
            if apart_seqs := seqs != usual.max_num_seqs.value:
                args[OPEN["max_num_seqs"][1]] = seqs
            if apart_tokens := tokens != usual.max_num_batched_tokens.value:
                args[OPEN["max_num_batched_tokens"][1]] = tokens
            asked = with_values(deploy, args=args)
            choices = draft(asked, facts)
            for length in _lengths(asked, choices, held):
                if apart_length := length != choices.max_model_len.value:
                    asked = with_values(asked, args=args | {OPEN["max_model_len"][1]: length})
                    choices = replace(choices, max_model_len=Choice(length, "search"))
                yield asked, choices, apart_seqs + apart_tokens + apart_length


def _sequences(deploy: Deploy, usual: Choices, held: Iterable[str]) -> list[int]:
    own = usual.max_num_seqs.value
    if "max_num_seqs" in held:
        return [own]
    if deploy.workload.request_rate is not None:
        return sorted({own, *SEQUENCES}, reverse=True)
    return sorted({own, *(math.ceil(own / share) for share in SHARES)}, reverse=True)


def _tokens(usual: Choices, seqs: int, held: Iterable[str]) -> list[int]:
    """No fewer than sequences: the engine refuses that."""
    own = usual.max_num_batched_tokens.value
    if "max_num_batched_tokens" in held:
        return [own] if own >= seqs else []
    return [own, *(tokens for tokens in TOKENS if tokens != own)] if own >= seqs else [t for t in TOKENS if t >= seqs]


def _lengths(deploy: Deploy, choices: Choices, held: Iterable[str]) -> list[int]:
    """What `plan` takes, then each power of two below that all requests of the load have room in; the longest first."""
    own = choices.max_model_len.value
    if "max_model_len" in held:
        return [own]
    least = deploy.workload.max_context
    lower = (2**n for n in range(own.bit_length(), 6, -1))
    return [own, *(n for n in lower if n < own and (n >= least if least else share_longer(deploy, n) <= SELDOM))]


def with_values(
    deploy: Deploy, *, hardware: Mapping[str, Any] | None = None, quantization: Mapping[str, Any] | None = None,
    parallel: Mapping[str, Any] | None = None, args: Mapping[str, Any] | None = None,
) -> Deploy:  # fmt: skip
    """The file with other values in it; the places of what it says stay those of the file."""
    engine: dict[str, Any] = {}
    if parallel is not None:
        engine["parallel"] = deploy.engine.parallel.model_copy(update=dict(parallel))
    if args is not None:
        engine["args"] = dict(args)
    sections: dict[str, Any] = {}
    if hardware is not None:
        sections["hardware"] = deploy.hardware.model_copy(update=dict(hardware))
    if quantization is not None:
        sections["quantization"] = deploy.quantization.model_copy(update=dict(quantization))
    if engine:
        sections["engine"] = deploy.engine.model_copy(update=engine)
    return deploy.model_copy(update=sections)
