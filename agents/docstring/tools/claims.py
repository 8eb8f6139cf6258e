"""Checks of a sentence that a model wrote: what it claims is in the code, and it says more than the name."""

import re

from prose import new_words, stem, words_of
from words import COMMON, VERBS

EMPTY = (
    r"(?i)\b(?:helper|utility|simply|various|certain|this function|this method|the function|the method|appropriate)"
    r"\b(?! `)"
)
NO_VERB = r"(?:ing|ed|ly|tion|ment|ness|ity|er|or|al)$"
ERROR = r"\b[A-Z]\w*(?:Error|Exception|Warning|Interrupt)\b"


CLAIMS = {
    r"\bsort(?:s|ed|ing)?\b": r"sort|order|heap",
    r"\bunique\b|\bduplicat": r"\bset\(|uniq|dup|seen|distinct|\bset\b",
    r"\basync": r"async|await",
    r"\bcase[- ]insensitiv": r"lower|upper|casefold|IGNORECASE|re\.I\b",
    r"\brandom": r"random|choice|shuffle|uuid|secrets",
    r"\bcach(?:e|es|ed|ing)\b": r"cache|memo",
    r"\bthread": r"[Tt]hread|[Ll]ock",
    r"\blog(?:s|ged|ging)?\b": r"log",
    r"\bprint": r"print|write|echo|stdout",
    r"\bfiles?\b": r"file|open\(|[Pp]ath|read|write|stream",
    r"\bcop(?:y|ies)\b": r"copy|\[:\]|list\(|dict\(|clone",
    r"\bwarn": r"warn",
    r"\bjson\b": r"json",
    r"\bnumber of\b|\bcount": r"len\(|count|sum\(|num|size|total|\+= 1",
    r"\bdefault": r"default|=",
    r"\brecursive": r"recurs",
}
"""Words that claim something, and what must be in the code of which they are true."""


WHETHER = r"(?i)\b(?:determines?|checks?|tests?|sees?|verif(?:y|ies)|tells?|true|false|`true`|`false`|whether)\s+if\b"
CASE = r"(?i)\b(?:if|unless|otherwise|when|except|without|else|only|until|before|after)\b"
"""Words that say in which case something holds, where they do not only say what is tested."""
ABBREVIATED = 3
"""Letters from which on a word of the code, such as `attr`, stands for a longer one, such as `attribute`."""


def why_unproven(text, facts, evidence, file=""):
    """A claim of the sentence without any sign of it in the code; empty if there is none."""
    low = text.lower()
    calls_itself = len(re.findall(rf"\b{re.escape(facts['name'])}\(", evidence)) > 1
    for claim in [one for one in CLAIMS if re.search(one, low)]:
        found = [one.group(0) for one in re.finditer(claim, low)]
        is_shown = re.search(CLAIMS[claim], evidence) or found[0] in words_of(evidence)
        if not is_shown and not (found[0].startswith("recurs") and calls_itself):
            return f"Nothing in the code shows `{found[0]}`"
    for number in re.findall(r"(?<![\w.])\d+(?:\.\d+)?\b", text):
        if not re.search(rf"(?<![\d.]){re.escape(number)}(?!\.?\d)", f"{evidence} {file}"):
            return f"The number {number} is not in the code"
    return ""


def why_untrue(text, facts, behaviour, evidence, fewest=2, file="", source=""):
    """What the sentence claims and the code does not have; empty if nothing was found.

    `fewest` of its words must be words of the code that the name and the parameters do not have. Words of `file`, the
    path, and of `source`, its text, are not strange: they are how its authors speak of such code.
    """
    low = text.lower()
    if re.search(r"[\"']\s*" + re.escape(low.rstrip(". ")), evidence.lower()):
        return "It is a text that the code shows to others: say what the code does"
    if wrong := why_no_error(text, behaviour, evidence):
        return wrong
    ends = behaviour.get("returns", [])
    none = behaviour.get("falls_through") or [one for one in ends if one["kind"] == "none"]
    if re.search(r"\breturns? none\b|\bor none\b|\bnone if\b", low) and not none:
        return "The code does not return None"
    if returns_function(evidence) and not re.search(MAKES, low):
        return "The code returns a function: say so"
    own = [one for one in ends if one["kind"] == "self"]
    if re.search(r"\breturns? (?:self|itself)\b|\bchain", low) and not own:
        return "The code does not return `self`"
    if re.search(r"\breturns?\b", low) and not ends and not behaviour.get("yields") and facts["kind"] != "class":
        return "The code returns nothing"
    if re.search(r"\byields?\b|\bgenerator\b", low) and not behaviour.get("yields") and "yield" not in evidence:
        return "The code yields nothing"
    if re.search(r"\bin[- ]place\b", low) and not behaviour.get("changes") and not facts.get("is_method"):
        return "The code changes no argument in place"
    unproven = why_unproven(text, facts, evidence, file)
    return unproven or why_unfounded(text, facts, evidence, fewest, f"{file} {source}")


MAKES = r"^(?:returns?|creates?|makes?|builds?|gets?|decorates?|wraps?)\b|\bfunction|\bcallable|\bdecorator|\bclosure"


def returns_function(code):
    """Whether the code returns a function that it defines."""
    inner = re.findall(r"(?m)^[ \t]+(?:async[ \t]+)?def[ \t]+(\w+)", code)
    return any(re.search(rf"(?m)^[ \t]+return[ \t]+{name}[ \t]*$", code) for name in inner)


def why_no_error(text, behaviour, evidence):
    """What the sentence says about errors and the code does not do."""
    raised = [one["name"].split(".")[-1] for one in behaviour.get("raises", [])]
    for name in re.findall(ERROR, text):
        if name not in raised and name not in evidence:
            return f"`{name}` is not raised in this code"
    if re.search(r"\brais(?:e|es|ing)\b|\bthrows?\b|\berror if\b", text.lower()) and not raised:
        return "The code raises nothing itself"
    return ""


def why_unfounded(text, facts, evidence, fewest, around=""):
    """Why the sentence is not about this code: too few of its words are in it, or too many are nowhere near it."""
    known = list(dict.fromkeys(stem(word) for word in words_of(evidence)))
    near = [*known, *dict.fromkeys(stem(word) for word in words_of(around))]
    every = [word for word in new_words(text, facts) if len(word) > 3]
    said = [word for word in every if word not in COMMON]
    verbs = [stem(verb) for verb in VERBS]
    strange = [word for word in said if stem(word) not in verbs and not is_among(word, near)]
    if 3 * len(strange) > max(len(said) + 1, 2):
        return f"Nothing in the code is about `{strange[0]}`"
    # A common word that the code has too, such as `name`, says half as much as a rare one.
    founded = sum(2 if word in said else 1 for word in every if is_among(word, known))
    given = [one["name"] for one in facts.get("parameters") or []]
    named = [name for name in re.findall(r"`([A-Za-z_]\w*)`", text) if name not in [*given, facts["name"], "self"]]
    founded += 3 * len([name for name in named if re.search(rf"\b{name}\b", evidence)])
    enough = founded + tells_case(text) >= 2 * fewest - 1
    return "" if enough else "It says nothing that only this code shows: use words of the code"


def is_among(word, known):
    """Whether a word, or one that is short for it, is among the stems."""
    return stem(word) in known or any(len(one) >= ABBREVIATED and word.startswith(one) for one in known)


def tells_case(text):
    """How much the sentence says about the case in which something holds: more if it names something of the code."""
    found = re.search(CASE, re.sub(WHETHER, "", text))
    return 0 if not found else 4 if "`" in text[found.start() :] else 2


def begins_with_verb(text):
    """Whether the first word is a known verb, or may be one: not an article, adverb, noun or participle, no subject."""
    first, second = [*words_of(text), "", ""][:2]
    if first in VERBS or first.removesuffix("s") in VERBS or first.removesuffix("es") in VERBS:
        return True
    if second in ("is", "are", "was", "were", "has", "have", "will", "can", "must"):
        return False
    return first not in COMMON and len(first) > 2 and not re.search(NO_VERB, first)


def why_empty(text, facts):
    """Why a sentence says nothing: it repeats the name, or has no verb."""
    if facts["kind"] != "class" and not begins_with_verb(text):
        return "The summary does not begin with a verb: say what the code does, such as `Return the …`"
    if facts["kind"] == "class" and re.match(r"(?i)(?:it )?(?:is|inherits|extends|derives)\b", text):
        return "The summary of a class says what its objects are or do, not what the class is"
    said = new_words(text, facts)
    things = [word for word in said if stem(word) not in [stem(verb) for verb in VERBS]]
    if len(said) < 2 or not things:
        return f"The summary only repeats the name `{facts['name']}`: say what the name does not"
    found = re.search(EMPTY, text)
    return f"The summary has words that say nothing: `{found.group(0)}`" if found else ""
