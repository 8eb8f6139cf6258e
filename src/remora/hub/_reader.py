"""Reads the index and proves every fact against the bytes of its file as one workspace sees it.

A record is used only if its file hash matches the current bytes. Otherwise, or if the index has no such file, the file
is extracted here in memory; nothing is written. So a stale, torn or wrong index can only reduce the facts, never make
them outdated.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from hashlib import sha256
from sqlite3 import Connection
from typing import Literal, NamedTuple, Protocol, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from remora.discovery import MAX_FILE, CodeFiles, Mapped, extract, language_of
from remora.errors import KVError, WorkspaceError
from remora.hub._models import EXTRACTOR, FILE_KEY, NODE_KEY, FileIndex, NodeState, node_id_of, split_node_id
from remora.hub._rows import FileRows, ref_key
from remora.hub._targets import places_of, resolve, targets_of
from remora.kv import KVFile, KVRow

MAX_CALLEES = 20


class RelationLimits(NamedTuple):
    """Most callers and tests of a node to find: each requires checking a file."""

    callers: int = 20
    tests: int = 20


MAX_REFS = 400
"""Most files to examine that use a name."""
MAX_CACHED_FILES, MAX_RECORDS = 256, 2000
"""Extracted files and records cached by readers."""

Model = TypeVar("Model", bound=BaseModel)
Freshness = Literal["index", "workspace"]
"""How facts were proven: the index has them for the current bytes, or they were just extracted."""


class View(Protocol):
    """The files as one workspace sees them."""

    def look(self, path: str) -> bytes:
        """Read a file. Raises `FileNotFoundError`, or `WorkspaceError` for a path that leads outside."""
        ...

    def changed(self) -> Collection[str]:
        """The files that differ from the project's."""
        ...


class ProjectView:
    """The project's own files. Links are not followed, so no path leads outside."""

    def __init__(self, files: CodeFiles) -> None:
        self._root = str(files.root)
        self._plain: set[str] = set()
        """Folders checked not to be links, once for each reader."""

    def look(self, path: str) -> bytes:
        """Read a file."""
        if path.startswith("/") or {"", ".", ".."} & set(path.split("/")):
            raise WorkspaceError(f"`{path:.200}` is not a path of the project")
        self._check_folder(path.rpartition("/")[0])
        handle = os.open(f"{self._root}/{path}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            info = os.fstat(handle)
            if not stat.S_ISREG(info.st_mode) or info.st_size > MAX_FILE:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            return _read(handle, info.st_size)
        finally:
            os.close(handle)

    def changed(self) -> Collection[str]:
        """Always empty."""
        self._plain.clear()
        return ()

    def _check_folder(self, folder: str) -> None:
        if folder and folder not in self._plain:
            self._check_folder(folder.rpartition("/")[0])
            if stat.S_ISLNK(os.lstat(f"{self._root}/{folder}").st_mode):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), folder)
            self._plain.add(folder)


class Cache:
    """Caches extracted files by path and hash, and parsed records by key and version."""

    def __init__(self) -> None:
        self._files: OrderedDict[tuple[str, str], FileRows] = OrderedDict()
        self._records: OrderedDict[tuple[str, int], BaseModel] = OrderedDict()

    def record(self, model: type[Model], row: KVRow) -> Model:
        """The parsed record. Versions only grow, so key and version identify it. Raises `ValidationError`."""
        record = self._records.pop((row.key, row.version), None)
        if not isinstance(record, model):
            record = model.model_validate_json(row.data)
        self._records[row.key, row.version] = record
        while len(self._records) > MAX_RECORDS:
            self._records.popitem(last=False)
        return record

    def get(self, path: str, digest: str, source: bytes, language: Mapped) -> FileRows:
        """The extracted file."""
        rows = self._files.pop((path, digest), None)
        self._files[path, digest] = rows = rows or FileRows(extract(path, source, language), language, "reader")
        while len(self._files) > MAX_CACHED_FILES:
            self._files.popitem(last=False)
        return rows


class Reader:
    """One pass over the index: everything it returns was proven while it was open. Blocking; discard it afterwards."""

    def __init__(self, kv: KVFile, db: Connection | None, view: View, cache: Cache) -> None:
        """Without `db`, only the files are used."""
        self._kv, self._db, self._view, self._cache = kv, db, view, cache
        self._changed_here = frozenset(view.changed())
        self._proven: dict[str, _Proven | None] = {}
        self._stored: dict[str, FileIndex | None] = {}
        self._nodes: dict[str, KVRow] = {}
        self._resolved: dict[tuple[str, str], tuple[str, str] | None] = {}
        self.hashes: dict[str, str] = {}
        """By path, the SHA-256 of the bytes that facts were proven against."""
        self.problem = ""
        """Why the index could not be used; empty if it could."""

    def states(self, node_ids: Iterable[str], wanted: RelationLimits = RelationLimits()) -> dict[str, NodeState]:  # noqa: B008 (immutable)
        """The nodes that exist now, with callees, callers and tests."""
        states: dict[str, NodeState] = {}
        node_ids = list(dict.fromkeys(node_ids))
        self._load([split_node_id(node_id)[0] for node_id in node_ids])
        keys = [NODE_KEY + node_id for node_id in node_ids]
        self._nodes = {row.key: row for row in self._ask(lambda db: self._kv.rows_of(db, keys))}
        for node_id in node_ids:
            state = self.state(node_id)
            if state is not None:
                states[node_id] = self._with_relations(state, wanted)
        return states

    def state(self, node_id: str) -> NodeState | None:
        """One node from its file, without relations."""
        path, qualified = split_node_id(node_id)
        file = self._prove(path)
        return None if file is None else file.state(self, qualified)

    def names_in(self, path: str) -> tuple[str, ...] | None:
        """The definitions of a file; None if there is no such code file."""
        file = self._prove(path)
        return None if file is None else file.index.nodes

    def freshness(self, node_id: str) -> Freshness:
        """How the node's own facts were proven."""
        file = self._proven.get(split_node_id(node_id)[0])
        return "index" if file is not None and file.rows is None else "workspace"

    def _with_relations(self, state: NodeState, wanted: RelationLimits) -> NodeState:
        callers = self._callers(state, wanted)
        tests = [node for node in callers if self._is_test(node)]
        return state.model_copy(
            update={
                "callees": tuple(self._callees(state)),
                "callers": tuple(node for node in callers if node not in tests),
                "related_tests": tuple(tests),
            }
        )

    def _callees(self, state: NodeState) -> list[str]:
        file = self._prove(state.path)
        language = language_of(state.path)
        if file is None or language is None:
            return []
        targets = list(targets_of(state.calls, state.qualified, file.index.imports, file.names, language.own_names))
        self._load([path for target in targets for path, _ in places_of(target, state.path, language)])
        callees: dict[str, None] = {}
        for target in targets:
            place = self._resolve(target, state.path, language)
            if place is not None and place[1] and place != (state.path, state.qualified):
                callees[node_id_of(*place)] = None
            if len(callees) >= MAX_CALLEES:
                break
        return list(callees)

    def _callers(self, state: NodeState, limits: RelationLimits) -> list[str]:
        name = state.qualified.rpartition(".")[2] or (_module_name(state.path) or "")
        wanted = (state.path, state.qualified)
        callers: list[str] = []
        left = {False: limits.callers, True: limits.tests}
        for path, users in self._uses(name, state, left):
            language = language_of(path)
            for user, targets in users.items() if language else ():
                # Importing a name is not calling it: that only counts as using the whole file.
                if (path, user) == wanted or (user == "" and state.qualified and path != state.path):
                    continue
                if any(self._resolve(target, path, language) == wanted for target in targets):  # type: ignore[arg-type]
                    callers.append(node_id_of(path, user))
                    left[_is_test_file(path)] -= 1
        return sorted(callers)

    def _uses(
        self, name: str, wanted: NodeState, left: Mapping[bool, int]
    ) -> Iterable[tuple[str, Mapping[str, Sequence[str]]]]:
        """The nodes that use a name, by file: proven ones from the index, and those of the workspace."""
        if not name:
            return
        prefix = ref_key(name)
        rows = self._ask(lambda db: self._kv.rows_with_prefix(db, prefix, MAX_REFS))
        for row in rows:
            path = row.key[len(prefix) :]
            users = orjson.loads(row.data)
            if path in self._changed_here or left[_is_test_file(path)] <= 0 or not self._refers_to(users, path, wanted):
                continue
            file = self._prove(path)
            if file is None:
                continue
            if file.rows is not None:
                yield path, file.rows.refs.get(name, {})
            else:
                yield path, {user: targets for user, targets in users.items() if not user or user in file.names}
        # Files extracted here: the index may not know yet that they use the name.
        indexed = {row.key[len(prefix) :] for row in rows} - self._changed_here
        for path in sorted(
            {*self._changed_here, *(path for path, file in self._proven.items() if file and file.rows)} - indexed
        ):
            file = self._prove(path)
            if file is not None and file.rows is not None and name in file.rows.refs:
                yield path, file.rows.refs[name]

    def _refers_to(self, users: Mapping[str, Sequence[str]], path: str, wanted: NodeState) -> bool:
        """Whether the file is worth proving: according to its record, it uses the wanted node."""
        language, place = language_of(path), (wanted.path, wanted.qualified)
        if language is None or not _could_refer_to(users, path, wanted):
            return False
        targets = (target for targets in users.values() for target in targets)
        return any(self._resolve(target, path, language) == place for target in targets)

    def _is_test(self, node_id: str) -> bool:
        path, qualified = split_node_id(node_id)
        language = language_of(path)
        if language is None or not language.is_test_file(path):
            return False
        return not qualified or any(part.lower().startswith(language.test_names) for part in qualified.split("."))

    def _resolve(self, target: str, importer: str, language: Mapped) -> tuple[str, str] | None:
        key = (target, importer)
        if key not in self._resolved:
            self._resolved[key] = resolve(target, importer, language, self._known)
        return self._resolved[key]

    def _known(self, paths: Sequence[str]) -> Mapping[str, FileIndex]:
        """Those of the paths that are files of the project, proven."""
        self._load([path for path in paths if path not in self._changed_here])
        there = [path for path in paths if path in self._changed_here or self._stored.get(path) is not None]
        return {path: file.index for path in there if (file := self._prove(path)) is not None}

    def _load(self, paths: Sequence[str]) -> None:
        missing = [path for path in dict.fromkeys(paths) if path not in self._stored]
        if not missing:
            return
        keys = [FILE_KEY + path for path in missing]
        self._stored |= dict.fromkeys(missing)
        for row in self._ask(lambda db: self._kv.rows_of(db, keys)):
            index = self._typed(FileIndex, row)
            if index is not None and row.key == FILE_KEY + index.path:
                self._stored[index.path] = index

    def _prove(self, path: str) -> _Proven | None:
        if path not in self._proven:
            self._proven[path] = self._prove_now(path)
        return self._proven[path]

    def _prove_now(self, path: str) -> _Proven | None:
        language = language_of(path)
        if language is None:
            return None
        try:
            source = self._view.look(path)
        except (OSError, WorkspaceError):
            return None
        digest = sha256(source).hexdigest()
        self.hashes[path] = digest
        self._load([path])
        index = self._stored.get(path)
        if index is not None and index.file_hash == digest and index.extractor == EXTRACTOR:
            return _Proven(index, None, source, language)
        try:
            source.decode()
        except UnicodeDecodeError:
            return None
        rows = self._cache.get(path, digest, source, language)
        return _Proven(rows.index(), rows, source, language)

    def _node(self, path: str, qualified: str, digest: str) -> NodeState | None:
        """The stored record, if it is for these bytes."""
        key = NODE_KEY + node_id_of(path, qualified)
        at_hand = self._nodes.get(key)
        for row in [at_hand] if at_hand else self._ask(lambda db: self._kv.rows_of(db, [key])):
            state = self._typed(NodeState, row)
            if state is not None and (state.file_hash, state.node_id) == (digest, row.key[len(NODE_KEY) :]):
                return state
        return None

    def _typed(self, model: type[Model], row: KVRow) -> Model | None:
        try:
            return self._cache.record(model, row)
        except ValidationError:
            self.problem = f"`{self._kv.path}`: the record {row.key!r:.80} is not a record of the Hub"
            return None

    def _ask(self, read: Callable[[Connection], list[KVRow]]) -> list[KVRow]:
        """Query the index. Empty if it cannot be used, and `problem` says why."""
        if self.problem or self._db is None:
            return []
        try:
            return read(self._db)
        except KVError as error:
            self.problem = error.message
            self._stored = dict.fromkeys(self._stored)
            return []


class _Proven:
    """A file whose bytes were just read: its record, and all that was extracted if the index had no valid one."""

    def __init__(self, index: FileIndex, rows: FileRows | None, source: bytes, language: Mapped) -> None:
        self.index, self.rows = index, rows
        self._source, self._language = source, language
        self._states: dict[str, NodeState] | None = None

    @cached_property
    def names(self) -> frozenset[str]:
        """The definitions of the file."""
        return frozenset(self.index.nodes)

    def state(self, reader: Reader, qualified: str) -> NodeState | None:
        """The node with that name."""
        if qualified and qualified not in self.names:
            return None
        if self.rows is None:
            stored = reader._node(self.index.path, qualified, self.index.file_hash)
            if stored is not None:
                return stored
            self.rows = reader._cache.get(self.index.path, self.index.file_hash, self._source, self._language)
        if self._states is None:
            self._states = self.rows.states()
        return self._states.get(qualified)


def _read(handle: int, size: int) -> bytes:
    """Read all bytes of a file, even if it grows meanwhile."""
    parts = [os.read(handle, size + 1)]
    while parts[-1]:
        parts.append(os.read(handle, 65536))
    return b"".join(parts)


def _could_refer_to(users: Mapping[str, Sequence[str]], path: str, wanted: NodeState) -> bool:
    """Whether a target could name the wanted node: it ends with its name, or is in the same file."""
    end = wanted.qualified or _module_name(wanted.path)
    return any(
        path == wanted.path if target.startswith(":") else target == end or target.endswith(f".{end}")
        for targets in users.values()
        for target in targets
    )


@lru_cache(maxsize=20_000)
def _is_test_file(path: str) -> bool:
    language = language_of(path)
    return language is not None and language.is_test_file(path)


def _module_name(path: str) -> str:
    language = language_of(path)
    return language.module_of(path).rpartition(".")[2] if language else ""
