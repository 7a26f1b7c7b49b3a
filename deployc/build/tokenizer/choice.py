"""Whose tokenizer, template and generation_config.json an artifact has: the model's or an adapter's, by rule.

- An adapter with a vocabulary (tokenizer.json, vocab.json, vocab.txt, a sentencepiece model) that means something else
  than the model's was trained with it: its files replace the model's as a set. The set may lack
  tokenizer_config.json: then the model's stays.
- Without a vocabulary, its tokenizer_config.json and special_tokens_map.json change the model's key by key.
- Files of one set, of one folder or of both, must agree on every added token's id (DC298). An adapter's auto_map other
  than the model's is refused with them: its Python code was not reviewed.
- Its chat template, in whatever file, replaces the model's, as its generation_config.json does. Where the tokenizer is
  the adapter's and it has no template, the model's stays.
- What means the same is left as the model has it. Files that no rule names (processors, Python code) are the model's.
- Adapters that bring files that mean different things cannot share an artifact (DC293).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from deployc.build.tokenizer import difference, faults
from deployc.build.tokenizer.meaning import Tokenizer, meaning
from deployc.build.tokenizer.small import (
    ADDED,
    CONFIG,
    GENERATION,
    JSON,
    MAP,
    Small,
    is_template,
    is_tokenizer,
    is_vocabulary,
    written,
)
from deployc.build.tokenizer.template import DEFAULT, FILE, files, holder, named, templates
from deployc.diagnostics import Diagnostic, Report


@dataclass(frozen=True, slots=True)
class Offer:
    """What one folder stands for: its tokenizer's files (completed by the model's), templates, generation config."""

    small: Small
    tokenizer: Small
    means: Tokenizer

    @property
    def name(self) -> str:
        """As people know it."""
        return self.small.where


@dataclass(frozen=True, slots=True)
class Choice:
    """The files of the artifact, what its tokenizer means, and what the model's own does."""

    files: Mapping[str, bytes]
    means: Tokenizer
    model: Tokenizer


def choose(model: Small, adapters: Sequence[Small], report: Report) -> Choice:
    """The artifact's files by the rules above; warnings and errors go into `report`. Raises Fault DC203."""
    base = Offer(model, _tokenizer_of(model), meaning(model))
    offers = [_offer(base, small) for small in adapters]
    tokenizer = _winner(base, [o for o in offers if _has_tokenizer(o.small)], _tokenizers, "tokenizers", report)
    template = _winner(base, [o for o in offers if templates(o.small)], _templates, "chat templates", report)
    generation = _winner(
        base, [o for o in offers if GENERATION in o.small.files], _generations, "generation configs", report
    )
    for small in (model, *adapters):
        small.json(GENERATION)  # so that a fault in it names its folder
    for offer in offers:
        report.extend(_contradictions(base, offer))
        if told := _told(base, offer, tokenizer, template, generation):
            report.add(told)
    kept = {n: raw for n, raw in model.files.items() if not (is_tokenizer(n) or is_template(n) or n == GENERATION)}
    kept |= {GENERATION: generation.small.files[GENERATION]} if GENERATION in generation.small.files else {}
    kept |= _assembled(tokenizer, template)
    return Choice(dict(sorted(kept.items())), tokenizer.means, base.means)


def _offer(base: Offer, own: Small) -> Offer:
    """An adapter's tokenizer, completed by the model's files where the rule says so."""
    found = dict(_tokenizer_of(own).files)
    if any(is_vocabulary(name) for name in found):
        if CONFIG not in found and CONFIG in base.tokenizer.files:
            found[CONFIG] = base.tokenizer.files[CONFIG]
    else:
        merged = dict(base.tokenizer.files)
        for name in (CONFIG, MAP):
            if name in found:
                merged[name] = written({**base.tokenizer.json(name), **own.json(name)})
        if ADDED in found:
            merged[ADDED] = found[ADDED]
        found = merged
    whole = Small(own.where, found)
    return Offer(own, whole, meaning(whole))


def _winner(
    base: Offer,
    offers: Sequence[Offer],
    differ: Callable[[Offer, Offer], list[str]],
    what: str,
    report: Report,
) -> Offer:
    """The first adapter's if it differs from the model's; the others must mean the same as the first."""
    if not offers:
        return base
    first = offers[0]
    for other in offers[1:]:
        if lines := differ(first, other):
            report.add(faults.several_tokenizers(first.name, other.name, what, lines))
    return first if differ(base, first) else base


def _told(base: Offer, offer: Offer, *chosen: Offer) -> Diagnostic | None:
    """DC279 for what was taken from this adapter."""
    kinds = (("tokenizer", _tokenizers), ("chat template", _templates), ("generation_config.json", _generations))
    taken = [(word, differ(base, offer)) for (word, differ), whose in zip(kinds, chosen, strict=True) if whose is offer]
    if not taken:
        return None
    kept = ""
    if chosen[0] is offer and not templates(offer.small) and templates(base.small):
        kept = "It has no chat template of its own: the model's stays."
    lines = [line for _, differences in taken for line in differences]
    return faults.own_tokenizer(offer.name, " and ".join(word for word, _ in taken), lines, kept)


def _contradictions(base: Offer, offer: Offer) -> list[Diagnostic]:
    """What is wrong in the adapter's set and was not so in the model's own."""
    known = _wrong(base)
    wrong = [line for line in _wrong(offer) if line not in known]
    more = f"; and {len(wrong) - 3} more" if len(wrong) > 3 else ""
    return [faults.contradiction(offer.name, "; ".join(wrong[:3]) + more + ".")] if wrong else []


def _wrong(offer: Offer) -> list[str]:
    """Every added token has one id, and every id one token; a special token has an id at all."""
    means, wrong = offer.means, []
    by_token: dict[str, tuple[str, int]] = {}
    by_id: dict[int, tuple[str, str]] = {}
    inside = means.vocabulary.keys() | {token for file, token, _ in means.stated if file == JSON}
    has_json = JSON in offer.tokenizer.files
    for file, token, number in means.stated:
        said_in, said = by_token.setdefault(token, (file, number))
        if said != number:
            wrong.append(f"{token!r} is {said} in {said_in} and {number} in {file}")
        said_in, other = by_id.setdefault(number, (file, token))
        if other != token:
            wrong.append(f"{number} is {other!r} in {said_in} and {token!r} in {file}")
        if has_json and token not in inside:
            wrong.append(f"{token!r} ({number}) is in {file} but not in {JSON}")
    for key, token in means.special.items():
        if means.tokens and token not in means.tokens:
            wrong.append(f"{key} is {token!r}, which has no id")
    if means.code is not None:
        wrong.append(f"auto_map of {CONFIG} asks for Python code ({means.code}), which is never taken from an adapter")
    return list(dict.fromkeys(wrong))


def _assembled(tokenizer: Offer, template: Offer) -> dict[str, bytes]:
    """The tokenizer's files with the template; of two folders' files, in exactly one place."""
    found = dict(tokenizer.tokenizer.files)
    place = holder(template.small)
    if not place or (template is tokenizer and found.get(CONFIG) == template.small.files.get(CONFIG)):
        return found | files(template.small)  # as its folder has it
    config = tokenizer.tokenizer.json(CONFIG)
    if place == CONFIG and named(config.get("chat_template")) == templates(template.small):
        return found
    if config.pop("chat_template", None) is not None:
        found[CONFIG] = written(config)
    if place != CONFIG:
        return found | files(template.small)
    texts = templates(template.small)
    if list(texts) == [DEFAULT]:
        return found | {FILE: texts[DEFAULT].encode()}
    rows = [{"name": name, "template": text} for name, text in texts.items()]
    return found | {CONFIG: written(config | {"chat_template": rows})}


def _has_tokenizer(small: Small) -> bool:
    """More than a template in tokenizer_config.json."""
    names = [name for name in small.files if is_tokenizer(name)]
    return bool(names) and (names != [CONFIG] or set(small.json(CONFIG)) != {"chat_template"})


def _tokenizer_of(small: Small) -> Small:
    return Small(small.where, {name: raw for name, raw in small.files.items() if is_tokenizer(name)})


def _tokenizers(old: Offer, new: Offer) -> list[str]:
    return difference.tokenizers(old.means, new.means)


def _templates(old: Offer, new: Offer) -> list[str]:
    return difference.templates(templates(old.small), templates(new.small))


def _generations(old: Offer, new: Offer) -> list[str]:
    return difference.generations(old.small.json(GENERATION), new.small.json(GENERATION))
