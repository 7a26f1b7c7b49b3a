"""What can be wrong with tokenizer, template and generation_config, one function a code."""

from __future__ import annotations

from collections.abc import Sequence

from deployc.diagnostics import Diagnostic, error, note, warning


def own_tokenizer(adapter: str, taken: str, differences: Sequence[str], kept: str = "") -> Diagnostic:
    """The adapter was trained with another tokenizer, template or generation_config.json: the artifact has that."""
    lines = [f"{adapter} brings its own {taken}; the artifact has the adapter's. What differs from the model's:"]
    detail = "\n".join([*lines, *(f"- {line}" for line in differences), *([kept] if kept else [])])
    fix = "If it was trained with the model's, remove these files from the adapter's folder; else nothing is to do."
    return warning("DC279", "the adapter has another tokenizer or template", detail, fix)


def several_tokenizers(first: str, other: str, what: str, differences: Sequence[str]) -> Diagnostic:
    """One artifact has one tokenizer."""
    detail = "\n".join([f"{first} and {other} bring different {what}:", *(f"- {line}" for line in differences)])
    fix = (
        "Merge adapters that were trained with the same files; if they can share one of the two, remove the other's "
        "from its folder."
    )
    return error("DC293", "the adapters have different tokenizers", detail, fix)


def beyond(whose: str, tokens: Sequence[tuple[str, int]], rows: int) -> Diagnostic:
    """Tokens that the embedding has no row for: the engine refuses or crashes on a prompt that holds one."""
    return error("DC294", "tokens lie beyond the model's embedding", _named(whose, tokens, rows), _RESIZE)


def beyond_in_model(whose: str, tokens: Sequence[tuple[str, int]], rows: int) -> Diagnostic:
    """The model came so (Gemma 3 1B has the token of its larger sisters' images) and is served so everywhere."""
    fix = "Nothing is to do, unless prompts hold such a token: the engine refuses them."
    return note("DC294", "tokens lie beyond the model's embedding", _named(whose, tokens, rows), fix)


def id_beyond(where: str, key: str, value: object, rows: int) -> Diagnostic:
    """eos_token_id with nothing to put in its place."""
    detail = f"{key} of {where} is {value}; the input embedding has {rows:,} rows, so generation never ends by it."
    fix = f"Write the id of the token that ends a text as {key} into {where}."
    return error("DC294", "tokens lie beyond the model's embedding", detail, fix)


def turn_did_not_end(template: str, ends: Sequence[str], known: str, added: Sequence[int]) -> Diagnostic:
    """Mended: without it the model goes on and writes the user's next turn itself, until max_tokens."""
    detail = (
        f"The {template} ends a turn with {' or '.join(ends)}, but generation ended only at {known}: the model would "
        f"never stop talking. {', '.join(map(str, added))} was added to eos_token_id of the artifact's "
        "generation_config.json."
    )
    fix = "Nothing is to do. To make this quiet, add it to eos_token_id of generation_config.json in the source."
    return warning("DC295", "the end of a turn did not end generation", detail, fix)


def end_unknown(detail: str, fix: str) -> Diagnostic:
    """Nothing can be mended: whether answers end is to be tried."""
    return warning("DC296", "what ends a turn cannot be told", detail, fix)


def no_template() -> Diagnostic:
    """Fine for a model that continues text."""
    detail = (
        "There is no chat template: /v1/completions works, /v1/chat/completions only where the engine has a template "
        "of its own for this kind of model."
    )
    return note("DC296", "what ends a turn cannot be told", detail, "For messages, set api.chat_template.")


def broken_template(which: str, line: int | None, message: str) -> Diagnostic:
    """Every request with messages would fail."""
    at = f", line {line}" if line else ""
    fix = "Mend the template at that line, or set api.chat_template to one that renders."
    return error("DC297", "the chat template cannot be rendered", f"The {which}{at}: {message}", fix)


def contradiction(whose: str, detail: str) -> Diagnostic:
    """Files of one tokenizer that are not of one save."""
    fix = (
        "Save the tokenizer of the training beside the adapter as a whole (tokenizer.save_pretrained), or remove its "
        "tokenizer files so that the model's are taken."
    )
    return error("DC298", "tokenizer files contradict each other", f"{whose}: {detail}", fix)


def mended_id(where: str, key: str, was: object, now: object, rows: int) -> Diagnostic:
    """An id that no row belongs to, replaced by the tokenizer's or taken out."""
    became = "it was taken out" if now is None else f"it is {now} now"
    detail = f"{key} of {where} was {was}, but the input embedding has {rows:,} rows; {became}."
    return warning("DC299", "an id of a special token was beyond the vocabulary", detail, "Nothing is to do.")


_RESIZE = (
    "Train the adapter with the embedding resized and saved (model.resize_token_embeddings(len(tokenizer)), "
    "modules_to_save: [embed_tokens, lm_head]), or remove these tokens from the tokenizer's files."
)


def _named(whose: str, tokens: Sequence[tuple[str, int]], rows: int) -> str:
    named = ", ".join(f"{token!r} ({number})" for token, number in tokens[:3])
    more = f" and {len(tokens) - 3:,} more" if len(tokens) > 3 else ""
    count = "1 token lies" if len(tokens) == 1 else f"{len(tokens):,} tokens lie"
    return f"{whose}: {named}{more}: {count} at or beyond the {rows:,} rows of the input embedding."
