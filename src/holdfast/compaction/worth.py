"""How much a sentence of a work session is worth to those who resume it, by its form alone."""

from __future__ import annotations

import re

# Choices, reasons, results and rules.
_WORTH = re.compile(
    r"\b(?:because|since|so that|instead of|rather than|therefore|root cause|caused by|turns out|due to|"
    r"by design|decid\w+|decision|agreed?|chose\w*|choice|settled|prefer\w*|go(?:ing)? with|"
    r"we(?:'ll| will) (?:use|keep)|let's|switch(?:ed)? to|replac\w+|drop(?:ped)?|remov\w+|renam\w+|keep\w*|"
    r"stays?|never|always|only|must|should|shall|need(?:s|ed)? to|don't|do not|doesn't|does not|no longer|"
    r"from now on|not|now|fixed|works?|added|deferred|ratified|locked|resolved|remains?|left open|"
    r"still open|pending|limit\w*|default\w*)\b|→|≠|≤|≥",
    re.IGNORECASE,
)
# Steps that are told as they are taken, offers, and what only announces.
_PASSING = re.compile(
    r"(?:let me|let's (?:look|see|check|start)|now (?:let|i|the|add|for|update|run)|i'll|i will|i'm going|"
    r"first,|next|here's|here is|want me|shall i|should i|would you|do you want|one more|looking|reading|"
    r"checking|running|good|great|perfect|all (?:green|pass|clean)|done|clean|build)\b",
    re.IGNORECASE,
)
_LEAD = re.compile(r"\*\*[^*]{3,80}\*\*")
_VALUE = re.compile(r"\d|`[^`]+`")


def worth(text: str, role: str) -> float:
    """Return from 0 to 1 how much a sentence is worth keeping."""
    if role == "user":
        return 0.9 if len(text.split()) > 3 else 0.3
    score = 0.25 + 0.12 * min(4, len({found.lower() for found in _WORTH.findall(text)}))
    score += 0.1 * (_LEAD.search(text) is not None) + 0.05 * min(2, len(_VALUE.findall(text)))
    if text[-1] in "?？:" or _PASSING.match(text):
        return 0.0
    return min(1.0, score)
