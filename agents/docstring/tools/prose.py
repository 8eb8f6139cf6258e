"""What a docstring can say about a function because the code proves it."""

import re

from words import SMALL, VERBS

ABSTRACT = ("NotImplementedError", "NotImplemented")
MADE = r"(?:\w+\.)*(?:WinError|error_\w+|[a-z_]\w*)$"
"""What is called to make an error, and is no class: `raise ctypes.WinError()` raises an `OSError`."""


CONSTANT = r"`(?:-?[\d.]+|\"[^\"]*\"|'[^']*'|True|False|None|[A-Z][A-Z_\d]*)`|True|False|None|-?[\d.]+"
"""A value that needs no name of the code."""


def words_of(text):
    """The words of a text or of names in it, in lower case."""
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1 \2", text))
    return [word.lower() for word in re.findall(r"[^\W_]+", spaced)]


def stem(word):
    """The word without common endings, to see whether two words are the same."""
    for end in ("ations", "ation", "ings", "ing", "ied", "ies", "ed", "es", "er", "s", "e", "y"):
        if word.endswith(end) and len(word) - len(end) >= 3:
            return word[: -len(end)]
    return word


def new_words(sentence, facts):
    """The words of a sentence that its function's name and parameters do not have."""
    known = words_of(facts["qualified"]) + [
        word for one in facts.get("parameters") or [] for word in words_of(one["name"])
    ]
    known = [stem(word) for word in known]
    said = [word for word in words_of(sentence) if word not in SMALL]
    return [word for word in said if stem(word) not in known]


def provable_raises(behaviour):
    """The errors that the code raises itself, and when, in words: pairs of a name and a text."""
    found = {}
    for one in behaviour["raises"]:
        if one["name"] and one["name"] not in ABSTRACT and one["when"] and not re.match(MADE, one["name"]):
            found[one["name"]] = [*found.get(one["name"], []), one["when"]]
    return [(name, "If " + ", or if ".join(dict.fromkeys(when)) + ".") for name, when in found.items() if len(when) < 4]


def unclear_raises(behaviour):
    """The errors that the code raises itself, but nobody can say in words when."""
    clear = [name for name, text in provable_raises(behaviour)]
    return [one["name"] for one in behaviour["raises"] if one["name"] and one["name"] not in clear]


def first_sentence_by_rule(facts, behaviour):
    """A sentence that says all the function does, from its statements; empty if it would only repeat name or code."""
    steps = behaviour.get("steps") or []
    if not steps or unclear_raises(behaviour):
        return ""
    sets = [step for step in steps if step["do"] == "set"]
    ends = [step for step in steps if step["do"] == "return"]
    if any(not re.fullmatch(CONSTANT, step["value"]) for step in sets) or len(sets) > 1:
        return ""  # it would be the code once more
    said = [f"set {step['target']} to {step['value']}" for step in sets]
    if ends and not sets and provable_raises(behaviour) and re.match(r"`self\.\w+(\(\))?`$", ends[0]["value"]):
        return f"Same as {ends[0]['value']}."
    if ends and (sets or provable_raises(behaviour)):
        said.append(f"return {ends[0]['value']}")
    elif ends:
        return ""
    if ends and not sets and ends[0]["plain"]:
        return ""
    text = " and ".join(said)
    more = [when for name, when in provable_raises(behaviour)]
    # Without an error that it raises, the sentence would only be the code once more.
    if not more or not text or not new_words(" ".join([text, *more]), facts):
        return ""
    return text[0].upper() + text[1:] + "."


def further_facts(facts, behaviour, text):
    """Sentences for what a first sentence written by a model does not say yet: arguments changed, None returned."""
    said = []
    changed = [one["name"] for one in behaviour["changes"]]
    if changed and "in place" not in text and facts["name"] != "__init__":
        named = " and ".join(f"`{name}`" for name in changed[:2])
        said.append(f"Changes {named} in place.")
    ends = behaviour["returns"]
    none = [one for one in ends if one["kind"] == "none"]
    some = [one for one in ends if one["kind"] != "none"]
    if some and none and "None" not in text and all(one["when"] for one in none) and not behaviour["falls_through"]:
        said.append("Returns None if " + ", or if ".join(dict.fromkeys(one["when"] for one in none)) + ".")
    if ends and all(one["kind"] == "self" for one in ends) and "self" not in text and "chain" not in text:
        said.append("Returns `self`.")
    return said


def in_person(text, third_person):
    """The sentence with its verbs as the project writes them: `Returns` or `Return`. Left as it is where unclear."""
    first, space, rest = text.partition(" ")
    said = verb_form(first, third_person) + space + rest
    for verb in ("return", "set"):
        old = verb if third_person else f"{verb}s"
        said = said.replace(f" and {old} `", f" and {verb_form(verb, third_person).lower()} `")
    joined = re.findall(r" and ([a-z]+) [^`]", said)
    unclear = [word for word in joined if verb_form(word, third_person).lower() != word]
    return text if unclear else said


def verb_form(word, third_person):
    """A verb with or without the `s` of the third person; another word as it is."""
    low = word.lower()
    plain = [verb for verb in VERBS if low in (verb, f"{verb}s", f"{verb}es", f"{verb[:-1]}ies")][:1]
    if not plain:
        return word
    verb = plain[0]
    ends = "es" if verb.endswith(("s", "sh", "ch", "x", "z")) else "s"
    with_s = f"{verb[:-1]}ies" if verb.endswith("y") and verb[-2] not in "aeiou" else f"{verb}{ends}"
    said = with_s if third_person else verb
    return said[0].upper() + said[1:]


def with_ticks(text, ticks):
    """The text with code marked as the project marks it."""
    return text if ticks == "`" else re.sub(r"`([^`\n]+)`", r"``\1``", text)
