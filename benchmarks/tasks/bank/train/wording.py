"""Small tools for writers: counting, marking and cleaning up text."""

from __future__ import annotations

import re
from collections import Counter

STOP_WORDS = frozenset({"the", "and", "of", "to", "a"})


def count_words(text: str, ignore: set[str] | None = None) -> int:
    """Count the words of a text.

    Args:
        text: The text.
        ignore: Words in small letters that do not count.

    Returns:
        How many words there are.
    """
    words = re.findall(r"[a-z']+", text.lower())
    if ignore is None:
        return len(words)
    return len([word for word in words if word not in ignore])


#: "It's a fine day" -> 4
#: "The cat and THE dog", {"the", "and"} -> 2
#: "" -> 0


def common_words(text: str, number: int = 3) -> list[str]:
    """Name the words that a text uses most.

    Args:
        text: The text.
        number: How many words to name.

    Returns:
        The words, the most common first.
    """
    words = [word for word in re.findall(r"[a-z]+", text.lower()) if word not in STOP_WORDS]
    ranked = sorted(Counter(words).items(), key=lambda pair: (-pair[1], pair[0]))
    return [word for word, _ in ranked[:number]]


#: "the sea and the sea of sand", 2 -> ["sea", "sand"]
#: "one two two three three three" -> ["three", "two", "one"]
#: "the of", 5 -> []


def slugify(title: str, separator: str = "-", longest: int = 40) -> str:
    """Make a title fit for an address.

    Args:
        title: The title as written.
        separator: What stands between words.
        longest: Characters at most.

    Returns:
        Small letters, digits and separators only.

    Raises:
        ValueError: If nothing of the title is left.
    """
    words = re.findall(r"[a-z0-9]+", title.lower())
    slug = separator.join(words)[:longest].strip(separator)
    if not slug:
        raise ValueError(f"no letters in {title!r}")
    return slug


#: "Hello, World!" -> "hello-world"
#: "A b c", "_" -> "a_b_c"
#: "one two three", "-", 8 -> "one-two"
#: "?!" -> raises ValueError


def wrap_lines(words: list[str], width: int) -> list[str]:
    """Set words into lines of at most a given width.

    Args:
        words: The words in order.
        width: Characters that a line may have.

    Returns:
        The lines; a word that is too long has one of its own.
    """
    lines: list[str] = []
    current = ""
    for word in words:
        candidate = f"{current} {word}" if current else word
        if len(candidate) <= width:
            current = candidate
            continue
        if current:
            lines.append(current)
        current = word
    if current:
        lines.append(current)
    return lines


#: ["a", "bb", "ccc"], 4 -> ["a bb", "ccc"]
#: ["abcdef", "g"], 3 -> ["abcdef", "g"]
#: [], 10 -> []


def mark_term(text: str, term: str, mark: str = "*") -> str:
    """Put a mark before and after each place where a term stands.

    Args:
        text: The text to mark.
        term: What to look for, in any case.
        mark: What is put around it.

    Returns:
        The text with marks.
    """
    if not term:
        return text
    return re.sub(re.escape(term), lambda found: f"{mark}{found[0]}{mark}", text, flags=re.IGNORECASE)


#: "Tea and tea", "tea" -> "*Tea* and *tea*"
#: "a.b", ".", "_" -> "a_._b"
#: "abc", "" -> "abc"


def initials(name: str, limit: int | None = None) -> str:
    """Abbreviate a name.

    Args:
        name: All parts of the name.
        limit: How many letters at most.

    Returns:
        Capital letters, each with a full stop.
    """
    letters = [part[0].upper() for part in name.split()]
    if limit is not None:
        letters = letters[:limit]
    return "".join(f"{letter}." for letter in letters)


#: "ada king lovelace" -> "A.K.L."
#: "ada king lovelace", 2 -> "A.K."
#: "" -> ""


def is_palindrome(text: str) -> bool:
    """Tell whether a text reads the same backwards.

    Args:
        text: The text; only its letters count.

    Returns:
        True if it does.
    """
    letters = [char for char in text.lower() if char.isalpha()]
    return len(letters) > 0 and letters == letters[::-1]


#: "Never odd or even" -> True
#: "palindrome" -> False
#: "?!" -> False
