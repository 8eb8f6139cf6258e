"""Converts files to code nodes."""

from __future__ import annotations

import ast
import hashlib
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from remora.discovery._files import MAX_FILE, python_files
from remora.discovery._foreign import left_alone
from remora.discovery._lines import LineTable, ranges
from remora.discovery._queries import bundled_query, query_with
from remora.discovery._syntax import Definition, Syntax, first_error, parse
from remora.ignore import Ignored
from remora.nodes import CodeNode, LineRange, NodeType

BOM = b"\xef\xbb\xbf"
KNOWN_FILES = 8
"""Files whose nodes are remembered while agents ask for them again."""
FILE = -1
"""The index of the file itself among its definitions."""


class TreeSitterDiscovery:
    """Finds code nodes in the Python files of the project at `root`. Reads the disk, changes nothing."""

    def __init__(
        self,
        root: Path,
        *,
        state_dir: Path | None = None,
        queries: Path | None = None,
        exclude: Sequence[str] = (),
    ) -> None:
        """`exclude` are patterns as in a `.gitignore`, for files to skip."""
        self._root = root.resolve()
        self._state_dir = state_dir.resolve() if state_dir else None
        self._query = query_with(queries) if queries else bundled_query()
        self._exclude = Ignored().within("", "\n".join(exclude).encode())
        self._known: dict[tuple[Path, str], dict[str, CodeNode]] = {}
        self.problems: list[str] = []
        """What the last `find` could not read or parse, one sentence each."""
        self.broken: set[Path] = set()
        """Files of the last `find` that are not valid Python. Nodes around the error are found, for read-only use."""

    def find(self, paths: Sequence[Path]) -> Sequence[CodeNode]:
        """Nodes of the files at and below `paths`, sorted by path and line.

        Raises `ConfigError` for a path that does not exist or is outside the project. A relative path is resolved from
        the current directory. A file that cannot be read is named in `problems`, and the others are still found.
        """
        self.problems, self.broken = [], set()
        return [node for file in self.files(paths) for node in self._nodes(file)]

    def files(self, paths: Sequence[Path]) -> Iterator[Path]:
        """The files to parse: not Remora's own state, wherever it is, and not too large to be code."""
        found = python_files(self._root, paths, self.problems)
        foreign = left_alone(found, self._root, paths)
        if foreign:
            first = min(file.as_posix() for file in foreign)
            said = "1 file is" if len(foreign) == 1 else f"{len(foreign)} files are"
            self.problems.append(f"{said} not this project's own code, such as `{first}`: name it to include it")
        for file in (file for file in found if file not in foreign):
            place = self._root / file
            if self._state_dir and place.is_relative_to(self._state_dir):
                continue
            if self._exclude.hides_file(file.as_posix()):
                continue
            if place.stat().st_size > MAX_FILE:
                self.problems.append(f"`{file.as_posix()}` is larger than {MAX_FILE:,} bytes")
                continue
            yield file

    def again(self, node: CodeNode, data: bytes) -> CodeNode | None:
        """The same node in other content of its file; None if it is not in there."""
        key = node.file_path, _digest(data)
        if key not in self._known:
            # The functions of one file ask one after the other, so a few files are enough.
            self._known = dict([*self._known.items()][-KNOWN_FILES:]) | {key: self._by_id(node.file_path, data)}
        return self._known[key].get(node.node_id)

    def _by_id(self, file: Path, data: bytes) -> dict[str, CodeNode]:
        """The nodes of some content of a file; none if it is not UTF-8."""
        try:
            data.decode()
        except UnicodeDecodeError:
            return {}
        source = data.removeprefix(BOM)
        found = nodes_of(file, source, parse(source, self._query), digest=_digest(data))
        return {node.node_id: node for node in reversed([*found])}

    def _nodes(self, file: Path) -> Iterator[CodeNode]:
        try:
            data = self._root.joinpath(file).read_bytes()
            source = data.removeprefix(BOM)
            source.decode()
        except OSError as error:
            self.problems.append(f"`{file.as_posix()}` cannot be read: {error.strerror}")
        except UnicodeDecodeError as error:
            self.problems.append(f"`{file.as_posix()}` is not UTF-8: byte {error.start} cannot be decoded")
        else:
            syntax = parse(source, self._query)
            if broken := first_error(syntax.root):
                self._note_error(file, source, LineTable(source).line_of(broken.start_byte))
            yield from nodes_of(file, source, syntax, digest=_digest(data))

    def _note_error(self, file: Path, source: bytes, line: int) -> None:
        """Record a parse error. If Python itself can parse the file, only code near the line may be missing."""
        if is_python(source):
            self.problems.append(f"`{file.as_posix()}`, around line {line}: the parser does not support this syntax")
            return
        self.broken.add(file)
        self.problems.append(f"`{file.as_posix()}` is not valid Python at line {line}: it is skipped")


def is_python(source: bytes) -> bool:
    """Whether the running Python can parse the source."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


@dataclass(frozen=True)
class _Place:
    """A definition and its lines."""

    definition: Definition
    lines: LineRange

    @property
    def node_type(self) -> NodeType:
        if self.definition.kind == "class":
            return NodeType.CLASS
        return NodeType.METHOD if self.definition.in_class else NodeType.FUNCTION


def nodes_of(file: Path, source: bytes, syntax: Syntax | None = None, *, digest: str = "") -> Iterator[CodeNode]:
    """The nodes of one file, the file itself first. Nothing if there is no code."""
    syntax = syntax or parse(source)
    if not syntax.has_code:
        return
    table = LineTable(source)
    places = [_Place(item, _lines(item, table)) for item in syntax.definitions]
    whole = LineRange(first=1, last=len(table))
    owner = _owners(whole, places, classes=False)
    yield CodeNode(
        node_id=file.as_posix(),
        node_type=NodeType.FILE,
        name=file.name,
        file_path=file,
        lines=whole,
        owned=ranges(owner[FILE]),
        text=source.decode(),
        digest=digest,
    )
    class_owner = _owners(whole, places, classes=True)
    for index, place in enumerate(places):
        is_class = place.node_type is NodeType.CLASS
        yield CodeNode(
            node_id=f"{file.as_posix()}:{place.definition.qualified}",
            node_type=place.node_type,
            name=place.definition.name,
            file_path=file,
            lines=place.lines,
            owned=ranges((class_owner if is_class else owner)[index]),
            text=table.text(place.lines),
            digest=digest,
        )


def whole_file(file: Path, data: bytes) -> CodeNode | None:
    """The file as a node that owns all of its lines, including those of functions; None if there is no code."""
    node = next(nodes_of(file, data.removeprefix(BOM), digest=_digest(data)), None)
    return node and node.model_copy(update={"owned": (node.lines,)})


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _lines(item: Definition, table: LineTable) -> LineRange:
    return LineRange(first=table.line_of(item.start), last=table.line_of(max(item.start, item.end - 1)))


def _owners(whole: LineRange, places: Sequence[_Place], *, classes: bool) -> dict[int, list[int]]:
    """The lines of each definition by its index. A line belongs to the last, innermost definition that contains it."""
    owner = [FILE] * (whole.last + 1)
    for index, place in enumerate(places):
        if classes or place.node_type is not NodeType.CLASS:
            lines = place.lines
            owner[lines.first : lines.last + 1] = [index] * (lines.last - lines.first + 1)
    owned: dict[int, list[int]] = defaultdict(list)
    for line in range(1, whole.last + 1):
        owned[owner[line]].append(line)
    return owned
