"""What looks like a secret: by the name it goes under, or by its own shape. Whatever shows a line masks it first."""

from __future__ import annotations

import re

_NAME = re.compile(
    r"(?i)(?:api|access|private|auth|signing|encryption)[-_]?key|token(?!s|iz|[-_]?ids?$|[-_]?threshold)|secret|passw"
    r"|passphrase|credential|bearer"
)
_HARMLESS = re.compile(
    r"(?i)(?:bos|eos|pad|unk|sep|cls|mask|stop|begin|start|end|image|video|audio|adapter|max|min|num|new|per|think)"
    r"[-_]?token"
)
# As well-known issuers begin theirs: OpenAI, Hugging Face, GitHub, GitLab, AWS, Slack; a PEM key; a URL's password.
_VALUE = re.compile(
    r"\b(?:sk-[\w-]{16,}|hf_\w{16,}|gh[pousr]_\w{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|AKIA[0-9A-Z]{16}"
    r"|xox[bpars]-[\w-]{16,})|-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----|(?<=://)[^\s/@:]{0,80}:[^\s/@]{1,200}(?=@)"
)
_ASSIGNED = re.compile(
    r"(?i)(?:(?:api|access|private|auth)[-_]?key|token(?!s|iz|_?id|[-_]?threshold)|secret|passw|passphrase|credential)"
    r"[\w.-]{0,40}[\"']?\s{0,8}[:=：]\s{0,40}(?P<value>\"[^\"]{1,2000}\"?|'[^']{1,2000}'?|[^\s,}#{&*|>\[\"'][^\s,}]{0,2000})"
)


def secret_name(name: str) -> bool:
    """Whether a key or variable of this name holds a secret: TOKEN, PASSWORD, API_KEY … but not `max_tokens`."""
    return bool(_NAME.search(name)) and not _HARMLESS.search(name)


def secret_value(text: str) -> bool:
    """Whether a text has the shape of a known kind of token, of a private key, or of a URL with a password."""
    return bool(_VALUE.search(text))


def masked(line: str) -> str:
    """The line as it may be shown: what looks like a secret is asterisks, as many as there were characters."""
    line = _VALUE.sub(lambda found: "*" * len(found[0]), line)
    return _ASSIGNED.sub(_hide, line)


def _hide(found: re.Match[str]) -> str:
    start = found.start("value") - found.start()
    return found[0][:start] + "*" * (len(found[0]) - start)
