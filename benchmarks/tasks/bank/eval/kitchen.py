"""Recipes for a canteen kitchen: scaling, shopping, allergies."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class Unit(Enum):
    """How an ingredient is weighed out."""

    GRAM = "g"
    LITRE = "l"
    PIECE = "pc"


@dataclass
class Ingredient:
    """Something that goes into a dish."""

    label: str
    quantity: float
    unit: Unit = Unit.GRAM


@dataclass
class Dish:
    """A title with ingredients for a number of plates."""

    title: str
    plates: int
    ingredients: list[Ingredient] = field(default_factory=list)
    vegan: bool = False


def scale_dish(dish: Dish, plates: int) -> Dish:
    """Adapt a recipe to another number of guests.

    Args:
        dish: The recipe as it is written down.
        plates: How many guests will eat.

    Returns:
        A new recipe with all quantities adapted.

    Raises:
        ValueError: When nobody would eat.
    """
    if plates <= 0:
        raise ValueError("cook for one guest or more")
    ratio = plates / dish.plates
    scaled = [Ingredient(part.label, round(part.quantity * ratio, 3), part.unit) for part in dish.ingredients]
    return Dish(dish.title, plates, scaled, dish.vegan)


#: Dish("soup", 2, [Ingredient("leek", 100)]), 5 -> Dish("soup", 5, [Ingredient("leek", 250.0)])
#: Dish("soup", 4, [], True), 1 -> Dish("soup", 1, [], True)
#: Dish("soup", 2), 0 -> raises ValueError


def shopping_list(dishes: list[Dish]) -> dict[str, float]:
    """Combine what several dishes need.

    Args:
        dishes: Everything on the menu.

    Returns:
        The quantity to buy of each ingredient.
    """
    basket: dict[str, float] = {}
    for dish in dishes:
        for part in dish.ingredients:
            if part.label in basket:
                basket[part.label] += part.quantity
            else:
                basket[part.label] = part.quantity
    return basket


#: [Dish("a", 1, [Ingredient("x", 2)]), Dish("b", 1, [Ingredient("x", 3), Ingredient("y", 1)])] -> {"x": 5, "y": 1}
#: [] -> {}


def contains_allergen(dish: Dish, allergens: set[str]) -> str | None:
    """Look for the first ingredient that a guest must avoid.

    Args:
        dish: What would be served.
        allergens: Labels in lower case that are off limits.

    Returns:
        The label of the ingredient, or None if the dish is safe.
    """
    for part in dish.ingredients:
        if part.label.lower() in allergens:
            return part.label
    return None


#: Dish("pad", 1, [Ingredient("rice", 80), Ingredient("Peanut", 9)]), {"peanut"} -> "Peanut"
#: Dish("pad", 1, [Ingredient("rice", 80)]), {"peanut"} -> None


def oven_minutes(weight: int, rare: bool = False, per_pound: int = 20) -> int:
    """Estimate how long a roast stays in the oven.

    Args:
        weight: Grams of meat.
        rare: Whether it should stay red inside.
        per_pound: Minutes for each 500 grams.

    Returns:
        Whole minutes, never fewer than fifteen.
    """
    minutes = weight * per_pound // 500 + 20
    if rare:
        minutes -= 25
    return max(minutes, 15)


#: 1000 -> 60
#: 1000, True -> 35
#: 250, True -> 15
#: 1000, False, 30 -> 80


def read_quantity(text: str) -> Ingredient:
    """Split a note into an ingredient with its unit.

    Args:
        text: Quantity, unit and label, such as `200 g flour`.

    Returns:
        The ingredient meant by the cook.

    Raises:
        ValueError: When quantity or unit cannot be understood.
    """
    parts = text.split(maxsplit=2)
    if len(parts) != 3:
        raise ValueError(f"incomplete note {text!r}")
    try:
        return Ingredient(parts[2], float(parts[0]), Unit(parts[1]))
    except ValueError as problem:
        raise ValueError(f"unclear note {text!r}") from problem


#: "200 g white flour" -> Ingredient("white flour", 200.0)
#: "0.5 l milk" -> Ingredient("milk", 0.5, Unit.LITRE)
#: "some salt" -> raises ValueError
#: "2 cups rice" -> raises ValueError


def menu_titles(dishes: list[Dish], vegan_only: bool = False, divider: str = ", ") -> str:
    """Write the menu on one line.

    Args:
        dishes: What the kitchen offers.
        vegan_only: Keep quiet about the rest.
        divider: Goes between two titles.

    Returns:
        The titles in alphabetical order.
    """
    titles = sorted(dish.title for dish in dishes if dish.vegan or not vegan_only)
    if not titles:
        return "nothing today"
    return divider.join(titles)


#: [Dish("stew", 4), Dish("salad", 4, [], True)] -> "salad, stew"
#: [Dish("stew", 4), Dish("salad", 4, [], True)], True -> "salad"
#: [Dish("stew", 4)], True -> "nothing today"
#: [Dish("b", 1), Dish("a", 1)], False, "/" -> "a/b"


def cost_per_plate(dish: Dish, prices: dict[str, float]) -> float:
    """Divide the cost of a dish among its plates.

    Args:
        dish: The recipe.
        prices: Price for one unit of each ingredient.

    Returns:
        The price of a plate, to the cent.

    Raises:
        KeyError: When an ingredient has no price.
    """
    cost = 0.0
    for part in dish.ingredients:
        if part.label not in prices:
            raise KeyError(part.label)
        cost += part.quantity * prices[part.label]
    return round(cost / dish.plates, 2)


#: Dish("rice", 4, [Ingredient("rice", 320), Ingredient("oil", 10)]), {"rice": 0.01, "oil": 0.08} -> 1.0
#: Dish("rice", 4, [Ingredient("rice", 320)]), {} -> raises KeyError
