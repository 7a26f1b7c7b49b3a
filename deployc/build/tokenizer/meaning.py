"""What the files of a tokenizer mean: which token has which id, which are special, and by what rules text is split.

Read after transformers 5.24 (`tokenization_utils_base.py`, `_from_pretrained`): tokenizer.json before sentencepiece
before vocab.json; special tokens from tokenizer_config.json, and from special_tokens_map.json only where the former
has no `added_tokens_decoder`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from deployc.build.tokenizer.sentencepiece import CONTROL, USER_DEFINED, pieces
from deployc.build.tokenizer.small import ADDED, CONFIG, JSON, MAP, Small

NAMED = ("eos_token", "bos_token", "pad_token", "unk_token")
SWITCHES = (
    "add_bos_token", "add_eos_token", "add_prefix_space", "clean_up_tokenization_spaces", "do_lower_case", "legacy",
    "split_special_tokens",
)  # fmt: skip
_RULES = ("normalizer", "pre_tokenizer", "post_processor", "decoder")
_FLAGS = ("special", "single_word", "lstrip", "rstrip", "normalized")


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """`tokens` is everything that has an id; `added` those of them that are found in text as a whole, with flags.

    `rules` are parts of tokenizer.json, or a digest of what cannot be read here; `special` has eos_token and the
    like; `stated` is (file, token, id) of each added token as each file says it.
    """

    where: str
    tokens: Mapping[str, int] = field(default_factory=dict)
    added: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)
    special: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)  # special tokens as a template sees them
    switches: Mapping[str, bool] = field(default_factory=dict)
    rules: Mapping[str, Any] = field(default_factory=dict)
    stated: tuple[tuple[str, str, int], ...] = ()
    vocabulary: Mapping[str, int] = field(default_factory=dict)  # `tokens` without the added ones
    code: Any = None  # auto_map: Python classes that the folder asks for

    def id(self, name: str) -> int | None:
        """The id of eos_token, bos_token …; None where it has none."""
        return self.tokens.get(self.special.get(name, ""))


def meaning(small: Small) -> Tokenizer:
    """The tokenizer of a folder's files; an empty one where there are none. Raises Fault DC203."""
    config, whole = small.json(CONFIG), small.json(JSON)
    listed = {name: _whole(value) for name, value in small.json(ADDED).items()}
    vocabulary, marked = _vocabulary(small, whole)
    flags: dict[str, dict[str, bool]] = {token: {} for token in marked}
    stated: list[tuple[str, str, int]] = []
    for file, entries in (
        (JSON, _entries(whole)),
        (CONFIG, _decoder(config)),
        (ADDED, [(t, i, {}) for t, i in listed.items()]),
    ):
        for token, number, how in entries:
            if number is None:
                continue
            stated.append((file, token, number))
            flags[token] = flags.get(token) or how
    tokens = dict(vocabulary)
    for _, token, number in reversed(stated):  # what tokenizer.json says holds
        tokens[token] = number
    given = config if "added_tokens_decoder" in config else config | small.json(MAP)
    texts = {key: text for key in given if (text := _text(given[key])) is not None and key.endswith("_token")}
    more = given.get("extra_special_tokens")
    if isinstance(more, dict):
        texts |= {key: text for key, value in more.items() if (text := _text(value)) is not None}
    return Tokenizer(
        where=small.where,
        tokens=tokens,
        added=flags,
        special={key: texts[key] for key in NAMED if key in texts},
        variables=texts,
        switches={key: config[key] for key in SWITCHES if isinstance(config.get(key), bool)},
        rules=_rules(small, whole),
        stated=tuple(stated),
        vocabulary=vocabulary,
        code=config.get("auto_map"),
    )


def _vocabulary(small: Small, whole: Mapping[str, Any]) -> tuple[dict[str, int], list[str]]:
    """Token -> id without the added ones, and the tokens that are whole in text by sentencepiece's own marks."""
    if JSON in small.files:
        vocabulary = _part(whole, "model").get("vocab")
        if isinstance(vocabulary, list):  # Unigram: [piece, score] by id
            return {
                row[0]: at
                for at, row in enumerate(vocabulary)
                if isinstance(row, list) and row and isinstance(row[0], str)
            }, []
        return _ids(vocabulary), []
    for name in sorted(small.files):
        if name.endswith(".model") and (found := pieces(small.files[name])):
            marked = [piece for piece, kind in found if kind in (CONTROL, USER_DEFINED)]
            return {piece: at for at, (piece, _) in enumerate(found)}, marked
    if "vocab.json" in small.files:
        return _ids(small.json("vocab.json")), []
    lines = small.files.get("vocab.txt", b"").decode(errors="replace").splitlines()
    return {token: at for at, token in enumerate(lines)}, []


def _rules(small: Small, whole: Mapping[str, Any]) -> dict[str, Any]:
    """How text is split, in a form that versions of the libraries write alike where they mean the same."""
    if JSON in small.files:
        model = {
            k: v for k, v in _part(whole, "model").items() if k not in ("vocab", "type") and v not in (None, False, "")
        }
        if isinstance(model.get("merges"), list):
            model["merges"] = [" ".join(map(str, m)) if isinstance(m, list) else m for m in model["merges"]]
        return {"model": model} | {key: _bare(whole[key]) for key in _RULES if whole.get(key) is not None}
    rules: dict[str, Any] = {}
    for name, raw in small.files.items():
        if name == "merges.txt":
            rules[name] = [
                line for line in raw.decode(errors="replace").splitlines() if not line.startswith("#version")
            ]
        elif name.endswith(".model"):
            rules["sentencepiece"] = hashlib.sha256(raw).hexdigest()
    return rules


def _entries(whole: Mapping[str, Any]) -> list[tuple[str, int | None, dict[str, bool]]]:
    """`added_tokens` of tokenizer.json."""
    rows = whole.get("added_tokens")
    return [
        (str(row.get("content")), _whole(row.get("id")), _flags(row))
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, dict)
    ]


def _decoder(config: Mapping[str, Any]) -> list[tuple[str, int | None, dict[str, bool]]]:
    """`added_tokens_decoder` of tokenizer_config.json: id -> token."""
    return [
        (str(row.get("content")), _whole(number), _flags(row))
        for number, row in _part(config, "added_tokens_decoder").items()
        if isinstance(row, dict)
    ]


def _flags(row: Mapping[str, Any]) -> dict[str, bool]:
    return {key: row[key] for key in _FLAGS if isinstance(row.get(key), bool)}


def _part(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def _ids(value: Any) -> dict[str, int]:
    return {k: v for k, v in value.items() if type(v) is int} if isinstance(value, dict) else {}


def _whole(value: Any) -> int | None:
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return value if type(value) is int else None


def _text(value: Any) -> str | None:
    """A token as a string or as an AddedToken's object."""
    if isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) else None


def _bare(value: Any) -> Any:
    """Without nulls, and in one order of keys."""
    return json.loads(json.dumps(_without_nulls(value), sort_keys=True))


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_nulls(v) for k, v in value.items() if v is not None}
    return [_without_nulls(v) for v in value] if isinstance(value, list) else value
