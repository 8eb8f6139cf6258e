"""Parse YAML and validate values against a pydantic model, with the place of every problem."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from remora.errors import DefinitionError, MissingExtra

Model = TypeVar("Model", bound=BaseModel)


def parse_yaml(text: str, file: Path | str) -> Any:
    """Parse a YAML text. Raises `ConfigError` with file, line and column."""
    try:
        import yaml
    except ImportError as error:
        raise MissingExtra("PyYAML, which reads settings and agent definitions,", extra="agents") from error
    try:
        return yaml.load(text, Loader=_loader())  # noqa: S506 - a SafeLoader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{mark.line + 1}:{mark.column + 1}: " if mark else ""
        raise DefinitionError(file, [f"{where}not YAML: {error.problem}"]) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise DefinitionError(file, [f"not YAML: {error}"]) from error


@cache
def _loader() -> Any:
    """YAML's safe loader. It also refuses a key that an object has twice, whose first value would be lost."""
    import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc, unused-ignore]
        def __init__(self, stream: Any) -> None:
            super().__init__(stream)
            self._checked: set[Any] = set()

        def flatten_mapping(self, node: Any) -> None:
            if node not in self._checked:  # once flattened, it also has the keys that `<<` merged
                self._checked.add(node)
                _check_keys(node, yaml.constructor.ConstructorError)
            super().flatten_mapping(node)

    return Loader


def _check_keys(node: Any, error: type[Exception]) -> None:
    first: dict[tuple[str, str], int] = {}
    for key, _ in node.value:
        name = key.tag, str(key.value)
        if key.id == "scalar" and name in first:
            problem = f"`{key.value:.200}` is already set in line {first[name]}: expected each key once"
            raise error(None, None, problem, key.start_mark)
        first[name] = key.start_mark.line + 1


def validate(model: type[Model], value: Any, file: Path | str, *, hint: str | None = None) -> Model:
    """Validate `value` as a `model`. Raises `ConfigError` with the path of each problem, such as `$.tools[2].path`."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        problems = [_problem(model, item["loc"], item["type"], item["msg"]) for item in error.errors(include_url=False)]
        raise DefinitionError(file, problems, hint=hint) from error


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """The models in a field's annotation."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for each in get_args(annotation) for found in models_in(each)]


def _problem(model: type[BaseModel], loc: tuple[int | str, ...], kind: str, message: str) -> str:
    around, path = _at(model, loc)
    place = "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part:.200}" for part in path)
    if kind in ("model_type", "dict_type"):
        return f"{place}: expected an object: keys with values"
    if kind != "extra_forbidden":
        return f"{place}: {message.removeprefix('Value error, ')}"
    known = list(around.model_fields)
    close = difflib.get_close_matches(str(loc[-1]), known, n=1)
    expected = f"did you mean `{close[0]}`?" if close else "expected one of " + ", ".join(f"`{name}`" for name in known)
    return f"{place}: unknown key; {expected}"


def _at(model: type[BaseModel], loc: tuple[int | str, ...]) -> tuple[type[BaseModel], list[int | str]]:
    """The innermost model around a pydantic location, and the location without union tags."""
    path: list[int | str] = []
    tagged: dict[str, type[BaseModel]] = {}
    for number, part in enumerate(loc):
        if str(part) in tagged:
            model, tagged = tagged[str(part)], {}  # a union tag: not part of the value
            continue
        path.append(part)
        field = model.model_fields.get(str(part))
        if field is None or number == len(loc) - 1:
            continue
        inner = models_in(field.annotation)
        tagged = _by_tag(inner, field.discriminator) if isinstance(field.discriminator, str) else {}
        if len(inner) == 1:
            model = inner[0]
    return model, path


def _by_tag(models: Sequence[type[BaseModel]], tag: str) -> dict[str, type[BaseModel]]:
    return {str(model.model_fields[tag].default): model for model in models}
