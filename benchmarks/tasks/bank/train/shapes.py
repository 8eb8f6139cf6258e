"""Plane geometry for a drawing program."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Point:
    """A place on the sheet, in millimetres."""

    x: float
    y: float


def distance_between(start: Point, end: Point) -> float:
    """Measure how far two points are from each other.

    Args:
        start: One point.
        end: The other point.

    Returns:
        The length of the straight line between them.
    """
    return math.hypot(end.x - start.x, end.y - start.y)


#: Point(1, 1), Point(4, 5) -> 5.0
#: Point(0, 0), Point(-6, 8) -> 10.0


def polygon_area(corners: list[Point]) -> float:
    """Compute the area inside a closed line.

    Args:
        corners: The corners in order, each once.

    Returns:
        The area, never negative.

    Raises:
        ValueError: If there are fewer than three corners.
    """
    if len(corners) < 3:
        raise ValueError("an area needs three corners")
    twice = 0.0
    for index, corner in enumerate(corners):
        following = corners[(index + 1) % len(corners)]
        twice += corner.x * following.y - following.x * corner.y
    return abs(twice) / 2


#: [Point(0, 0), Point(4, 0), Point(4, 3)] -> 6.0
#: [Point(1, 1), Point(1, 3), Point(4, 3), Point(4, 1)] -> 6.0
#: [Point(0, 0), Point(4, 0)] -> raises ValueError


def bounding_box(points: list[Point], margin: float = 0.0) -> tuple[float, float, float, float]:
    """Find the smallest upright rectangle around some points.

    Args:
        points: What must lie inside.
        margin: Room to leave on every side.

    Returns:
        Left, top, right and bottom.

    Raises:
        ValueError: If there is no point.
    """
    if not points:
        raise ValueError("nothing to draw a box around")
    across = [point.x for point in points]
    down = [point.y for point in points]
    return (min(across) - margin, min(down) - margin, max(across) + margin, max(down) + margin)


#: [Point(1, 5), Point(3, 2)] -> (1.0, 2.0, 3.0, 5.0)
#: [Point(1, 5), Point(3, 2)], 1.0 -> (0.0, 1.0, 4.0, 6.0)
#: [] -> raises ValueError


def scale_points(points: list[Point], factor: float, origin: Point | None = None) -> list[Point]:
    """Enlarge or shrink a drawing.

    Args:
        points: The points of the drawing.
        factor: How many times larger it gets.
        origin: The point that stays where it is.

    Returns:
        The points in their new places.
    """
    if origin is None:
        origin = Point(0, 0)
    left, top = origin.x, origin.y
    return [Point(left + (point.x - left) * factor, top + (point.y - top) * factor) for point in points]


#: [Point(1, 2)], 3 -> [Point(3, 6)]
#: [Point(1, 2), Point(5, 5)], 2, Point(1, 1) -> [Point(1, 3), Point(9, 9)]
#: [], 2 -> []


def format_point(point: Point, digits: int = 1, unit: str | None = None) -> str:
    """Write a point as people read it.

    Args:
        point: The point.
        digits: Digits after the decimal point.
        unit: What is written behind, such as `mm`.

    Returns:
        Both numbers in brackets.
    """
    text = f"({point.x:.{digits}f}, {point.y:.{digits}f})"
    if unit is not None:
        text = f"{text} {unit}"
    return text


#: Point(1, 2.25) -> "(1.0, 2.2)"
#: Point(1, 2.5), 0, "mm" -> "(1, 2) mm"
#: Point(-1, 0), 2 -> "(-1.00, 0.00)"


def circle_contains(centre: Point, radius: float, point: Point) -> bool:
    """Tell whether a point lies in a circle or on its edge.

    Args:
        centre: The middle of the circle.
        radius: How far it reaches.
        point: The point in question.

    Returns:
        True if it is not outside.
    """
    across = point.x - centre.x
    down = point.y - centre.y
    return across * across + down * down <= radius * radius


#: Point(0, 0), 5, Point(3, 4) -> True
#: Point(1, 0), 5, Point(5, 4) -> False
#: Point(2, 2), 1, Point(2, 2.5) -> True
#: Point(0, 1), 2, Point(0, -1) -> True


class Canvas:
    """A sheet of a given size that lines are drawn on."""

    def __init__(self, width: float, height: float) -> None:
        self.width = width
        self.height = height
        self.lines: list[tuple[Point, Point]] = []

    def holds(self, point: Point) -> bool:
        """Tell whether a point lies on the sheet.

        Args:
            point: The point in question.

        Returns:
            True if it is inside or on the border.
        """
        return 0 <= point.x <= self.width and 0 <= point.y <= self.height

    def draw(self, start: Point, end: Point) -> int:
        """Add a line between two points of the sheet.

        Args:
            start: Where the line begins.
            end: Where it ends.

        Returns:
            How many lines there are now.

        Raises:
            ValueError: If a point is not on the sheet.
        """
        for point in (start, end):
            if not self.holds(point):
                raise ValueError(f"({point.x}, {point.y}) is not on the sheet")
        self.lines.append((start, end))
        return len(self.lines)


#! Canvas.holds: assert Canvas(4, 3).holds(Point(4, 3)) is True
#! Canvas.holds: assert Canvas(4, 3).holds(Point(0, 0)) is True
#! Canvas.holds: assert Canvas(4, 3).holds(Point(5, 1)) is False
#! Canvas.holds: assert Canvas(4, 3).holds(Point(1, -1)) is False
#! Canvas.draw: page = Canvas(4, 3); page.draw(Point(0, 0), Point(1, 1)); assert page.draw(Point(0, 0), Point(1, 2)) > 1
#! Canvas.draw: with pytest.raises(ValueError): Canvas(4, 3).draw(Point(0, 0), Point(9, 9))
