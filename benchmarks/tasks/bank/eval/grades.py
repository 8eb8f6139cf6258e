"""Marks of a school class, from 1 (best) to 6."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class Subject(Enum):
    """One of maths, music and sport."""

    MATHS = "maths"
    MUSIC = "music"
    SPORT = "sport"


@dataclass
class Pupil:
    """A full name with marks, and how often absent."""

    full_name: str
    marks: dict[str, list[int]] = field(default_factory=dict)
    absent: int = 0


BEST, WORST = 1, 6


def mean_mark(marks: list[int]) -> float | None:
    """Average marks to two digits.

    Args:
        marks: Marks of one pupil.

    Returns:
        The average; None before the first test.

    Raises:
        ValueError: When a mark is out of range.
    """
    if not marks:
        return None
    for mark in marks:
        if mark < BEST or mark > WORST:
            raise ValueError(f"there is no mark {mark}")
    return round(sum(marks) / len(marks), 2)


#: [1, 2, 2] -> 1.67
#: [] -> None
#: [1, 7] -> raises ValueError
#: [0] -> raises ValueError
#: [6] -> 6.0


def record_mark(pupil: Pupil, subject: Subject, mark: int) -> int:
    """Append the mark, or refuse it as unknown.

    Args:
        pupil: Whose mark it is.
        subject: What was tested.
        mark: The result of the test.

    Returns:
        How many marks the pupil has in that subject.

    Raises:
        ValueError: When a mark is out of range.
    """
    if not BEST <= mark <= WORST:
        raise ValueError(f"mark {mark} is unknown")
    key = subject.value
    if key not in pupil.marks:
        pupil.marks[key] = []
    pupil.marks[key].append(mark)
    return len(pupil.marks[key])


#: Pupil("Lea"), Subject.MUSIC, 2 -> 1
#: Pupil("Lea", {"music": [1, 4]}), Subject.MUSIC, 6 -> 3
#: Pupil("Lea"), Subject.MATHS, 7 -> raises ValueError
#: Pupil("Lea"), Subject.MATHS, 0 -> raises ValueError


def passes(pupil: Pupil, worst_allowed: float = 4.0, max_absent: int = 20) -> bool:
    """Decide whether a pupil moves up a year.

    Args:
        pupil: The pupil with all marks.
        worst_allowed: No average may be above this.
        max_absent: Days that may have been missed.

    Returns:
        Whether the year counts as passed.
    """
    if pupil.absent > max_absent:
        return False
    return all(sum(marks) / len(marks) <= worst_allowed for marks in pupil.marks.values() if marks)


#: Pupil("Lea", {"music": [4, 4], "maths": [1]}) -> True
#: Pupil("Lea", {"music": [5, 4]}) -> False
#: Pupil("Lea", {}, 21) -> False
#: Pupil("Lea", {"maths": []}, 20) -> True


def ranking(pupils: list[Pupil], subject: Subject, top: int | None = None) -> list[str]:
    """Order pupils by their average in a subject.

    Args:
        pupils: The class.
        subject: The subject to compare.
        top: Stop after so many names.

    Returns:
        Names, best average first; those without marks are left out.
    """
    averages = []
    for pupil in pupils:
        marks = pupil.marks.get(subject.value, [])
        if marks:
            averages.append((sum(marks) / len(marks), pupil.full_name))
    names = [name for _, name in sorted(averages)]
    return names if top is None else names[:top]


#: [Pupil("Bo", {"sport": [3]}), Pupil("Al", {"sport": [1, 2]}), Pupil("Cy")], Subject.SPORT -> ["Al", "Bo"]
#: [Pupil("Bo", {"sport": [3]}), Pupil("Al", {"sport": [1, 2]})], Subject.SPORT, 1 -> ["Al"]
#: [Pupil("Cy")], Subject.MUSIC -> []


def grade_word(mark: float) -> str:
    """Express an average as a word on a certificate.

    Args:
        mark: The average.

    Returns:
        The word for it.
    """
    if mark < 1.5:
        return "very good"
    if mark < 2.5:
        return "good"
    if mark <= 4:
        return "sufficient"
    return "failed"


#: 1.49 -> "very good"
#: 1.5 -> "good"
#: 2.5 -> "sufficient"
#: 4 -> "sufficient"
#: 4.1 -> "failed"


def seat_pairs(names: list[str], teacher: str | None = None) -> list[tuple[str, str]]:
    """Pair children for the desks of a classroom.

    Args:
        names: Children in the order of the register.
        teacher: Who sits beside the last one of an odd class.

    Returns:
        Two names for every desk.
    """
    partner = "nobody" if teacher is None else teacher
    padded = names if len(names) % 2 == 0 else [*names, partner]
    return list(zip(padded[::2], padded[1::2], strict=True))


#: ["a", "b", "c"] -> [("a", "b"), ("c", "nobody")]
#: ["a", "b"], "mr t" -> [("a", "b")]
#: ["a"], "mr t" -> [("a", "mr t")]


def weighted_mark(written: list[int], spoken: list[int], weight: int = 2) -> float:
    """Blend written and spoken results.

    Args:
        written: Marks of written tests, never empty.
        spoken: Marks from the lessons, never empty.
        weight: How many times a written average counts.

    Returns:
        The blend, rounded to one digit.

    Raises:
        ValueError: When one kind of mark is missing.
    """
    if not written or not spoken:
        raise ValueError("both kinds of marks are needed")
    paper = sum(written) / len(written)
    talk = sum(spoken) / len(spoken)
    return round((paper * weight + talk) / (weight + 1), 1)


#: [2, 4], [6] -> 4.0
#: [2], [5], 1 -> 3.5
#: [], [5] -> raises ValueError
#: [2], [] -> raises ValueError
