"""Translation files, one a language, and the keys that code asks for."""

import json
import re

from remora.scripts import external


@external
async def read_file(path: str) -> str: ...


@external
async def write_file(path: str, content: str) -> None: ...


@external
async def file_exists(path: str) -> bool: ...


@external
async def search_files(pattern: str) -> list[str]: ...


USE = r"\bt\(\s*\"([\w.]+)\"(?:,\s*was=\"([\w.]+)\")?"
NOTES = "locales/notes.json"
UNTRANSLATED = "(en) "


def catalogue_of(language):
    return f"locales/{language}.json"


async def read_json(path):
    return json.loads(await read_file(path)) if await file_exists(path) else {}


async def save_texts(language, texts):
    """The language has these texts, sorted by key."""
    await write_file(catalogue_of(language), json.dumps(texts, indent=2, ensure_ascii=False, sort_keys=True) + "\n")


async def read_languages():
    """Texts by key, by language; English is one of them."""
    paths = [path for path in await search_files("locales/*.json") if path != NOTES]
    return {path[len("locales/") : -len(".json")]: await read_json(path) for path in sorted(paths)}


async def find_uses():
    """Each key that any module asks for, with its former name or an empty text."""
    uses = {}
    for path in await search_files("**/*.py"):
        uses.update(re.findall(USE, await read_file(path)))
    return uses


async def compare_texts():
    """The four lists of this agent, and how long they are together."""
    languages, uses = await read_languages(), await find_uses()
    english = languages.get("en", {})
    moved, untranslated, unused = [], [], []
    for language, texts in languages.items():
        for key, former in uses.items():
            if key in texts:
                continue
            if former and former in texts:
                moved.append(f"{language}: {former} is now {key}")
            elif key in english:
                untranslated.append(f"{language}: {key}")
        formers = [former for key, former in uses.items() if key not in texts]
        unused += [f"{language}: {key}" for key in texts if key not in uses and key not in formers]
    unwritten = [key for key, former in uses.items() if key not in english and former not in english]
    lists = {"moved": moved[:4], "untranslated": untranslated[:6], "unused": unused[:6], "unwritten": unwritten[:3]}
    return {**lists, "findings": len(moved) + len(untranslated) + len(unused)}


async def answer(message, failed=""):
    """What tools that write answer."""
    lists = await compare_texts()
    return {
        "result": message,
        "summary": failed or message,
        "knowledge_delta": lists,
        "outcome": "error" if failed else "success",
        "error": failed or None,
    }
