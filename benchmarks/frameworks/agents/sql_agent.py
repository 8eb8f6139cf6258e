"""The SQL agent of LangChain's documentation (docs.langchain.com/oss/python/langchain/sql-agent).

`create_agent` with the tools of `langchain_community`'s `SQLDatabaseToolkit`, as the tutorial builds it. The tutorial's
database, Chinook, is not in a package: this one has tables of the same kind, with generated rows.
"""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_community.agent_toolkits import SQLDatabaseToolkit
from langchain_community.utilities import SQLDatabase
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, convert_to_openai_messages
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver
from recorder import Recorder

GENRES = ("Rock", "Jazz", "Metal", "Blues", "Latin", "Reggae", "Classical", "Soundtrack")
COUNTRIES = ("Norway", "Brazil", "Canada", "France", "Germany", "India", "Portugal", "Chile", "Finland", "Ireland")
TABLES = """
CREATE TABLE Artist (ArtistId INTEGER PRIMARY KEY, Name TEXT);
CREATE TABLE Album (AlbumId INTEGER PRIMARY KEY, Title TEXT, ArtistId INTEGER REFERENCES Artist (ArtistId));
CREATE TABLE Genre (GenreId INTEGER PRIMARY KEY, Name TEXT);
CREATE TABLE Track (TrackId INTEGER PRIMARY KEY, Name TEXT, AlbumId INTEGER REFERENCES Album (AlbumId),
    GenreId INTEGER REFERENCES Genre (GenreId), Milliseconds INTEGER, UnitPrice NUMERIC);
CREATE TABLE Customer (CustomerId INTEGER PRIMARY KEY, Name TEXT, Country TEXT, Email TEXT);
CREATE TABLE Invoice (InvoiceId INTEGER PRIMARY KEY, CustomerId INTEGER REFERENCES Customer (CustomerId),
    InvoiceDate TEXT, Total NUMERIC);
CREATE TABLE InvoiceLine (InvoiceLineId INTEGER PRIMARY KEY, InvoiceId INTEGER REFERENCES Invoice (InvoiceId),
    TrackId INTEGER REFERENCES Track (TrackId), Quantity INTEGER)
"""
SYSTEM = (
    "You answer questions about a SQLite database. Look at its tables and their schemas, write a correct query, run "
    "it, and answer from its result. Ask for at most 10 rows, only for columns that matter, and never change data."
)


def music(path: Path) -> Any:
    """A shop with music, the same at every run. Tools run on threads, so that it is a file."""
    rng, words = random.Random(23), ("Blue", "Iron", "Quiet", "Northern", "Velvet", "Paper", "Golden", "Hollow")
    things = ("River", "Engine", "Garden", "Signal", "Harbor", "Mirror", "Winter", "Machine")

    def name() -> str:
        return f"{rng.choice(words)} {rng.choice(things)} {rng.randint(100, 999)}"

    rows = [
        ("Artist", [(n, name()) for n in range(1, 41)]),
        ("Album", [(n, name(), rng.randint(1, 40)) for n in range(1, 121)]),
        ("Genre", list(enumerate(GENRES, 1))),
        (
            "Track",
            [
                (n, name(), rng.randint(1, 120), rng.randint(1, 8), rng.randint(90_000, 600_000), 0.99)
                for n in range(1, 601)
            ],
        ),
        ("Customer", [(n, name(), COUNTRIES[n % 10], f"customer{n}@example.org") for n in range(1, 61)]),
        (
            "Invoice",
            [(n, rng.randint(1, 60), f"2025-{n % 12 + 1:02}-{n % 28 + 1:02}", n % 17 + 0.99) for n in range(1, 301)],
        ),
        ("InvoiceLine", [(n, rng.randint(1, 300), rng.randint(1, 600), 1) for n in range(1, 1501)]),
    ]
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(TABLES)
        for table, several in rows:
            marks = ", ".join("?" for _ in several[0])
            connection.executemany(f"INSERT INTO {table} VALUES ({marks})", several)
        connection.commit()
    return SQLDatabase.from_uri(f"sqlite:///{path}")


class Questions:
    """What a person asks, and the queries that answer it. Later ones use ids that earlier results showed."""

    def __init__(self, database: Any) -> None:
        self.database = database
        self.artists: list[int] = []

    def one(self, statement: str) -> Any:
        return self.database._execute(statement)[0]

    def conversation(self) -> list[tuple[str, list[Any]]]:
        look = [("sql_db_list_tables", {"tool_input": ""})]
        talk: list[tuple[str, list[Any]]] = []
        for genre in GENRES:
            best = (
                "SELECT a.ArtistId, a.Name, COUNT(*) AS Tracks FROM Track t JOIN Album b ON b.AlbumId = t.AlbumId "
                "JOIN Artist a ON a.ArtistId = b.ArtistId JOIN Genre g ON g.GenreId = t.GenreId "
                f"WHERE g.Name = '{genre}' GROUP BY a.ArtistId ORDER BY Tracks DESC, a.ArtistId LIMIT 10"
            )
            found = self.one(best)
            self.artists.append(found["ArtistId"])
            names = "Artist, Album, Track, Genre" if len(talk) < 4 else "Invoice, InvoiceLine, Customer"
            steps = [*look, ("sql_db_schema", {"table_names": names}), ("sql_db_query", {"query": best})]
            talk.append(
                (f"Who made most {genre} tracks?", [*steps, f"{found['Name']}, with {found['Tracks']} tracks."])
            )
            look = []
            albums = f"SELECT AlbumId, Title FROM Album WHERE ArtistId = {found['ArtistId']} ORDER BY Title LIMIT 10"
            album = self.one(albums)
            tracks = f"SELECT TrackId, Name, Milliseconds FROM Track WHERE AlbumId = {album['AlbumId']} LIMIT 10"
            talk.append(
                (
                    "Which albums are by that artist, and what is on the first one?",
                    [("sql_db_query", {"query": albums}), ("sql_db_query", {"query": tracks}), "Listed above."],
                )
            )
        sold = (
            "SELECT COUNT(*) AS Sold FROM InvoiceLine l JOIN Track t ON t.TrackId = l.TrackId "
            "JOIN Album b ON b.AlbumId = t.AlbumId WHERE b.ArtistId = {}"
        )
        for place in (0, 1, 2):
            step = ("sql_db_query", {"query": sold.format(self.artists[place])})
            talk.append((f"How often was the {GENRES[place]} artist sold?", [step, "As shown."]))
        return talk


class Scripted(BaseChatModel):
    steps: list[Any]
    recorder: Any

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self.bind(tools=[convert_to_openai_tool(each) for each in tools])

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **more: Any) -> ChatResult:
        step = self.steps.pop(0)
        calls = [] if isinstance(step, str) else [step[1]]
        said = [message_text(each) for each in convert_to_openai_messages(messages[1:])]
        self.recorder.request(messages[0].text, said, [each["function"] for each in more["tools"]], calls)
        made = [{"name": step[0], "args": step[1], "id": f"call-{len(self.steps)}"}] if calls else []
        reply = AIMessage("" if calls else step, tool_calls=made)
        return ChatResult(generations=[ChatGeneration(message=reply)])


def message_text(message: Any) -> str:
    calls = [f"{call['function']['name']} {call['function']['arguments']}" for call in message.get("tool_calls", ())]
    return "\n".join([str(message["content"]), *calls])


def main() -> None:
    recorder = Recorder()
    database = music(recorder.out / "music.db")
    talk = Questions(database).conversation()
    model = Scripted(steps=[step for _, several in talk for step in several], recorder=recorder)
    middleware: list[Any] = []
    if recorder.settings is not None:
        from remora.integrations.langchain import TwoTracks

        middleware = [TwoTracks(**recorder.settings)]
    tools = SQLDatabaseToolkit(db=database, llm=model).get_tools()
    agent: Any = create_agent(model, tools, system_prompt=SYSTEM, middleware=middleware, checkpointer=InMemorySaver())
    for said, _ in talk:
        agent.invoke({"messages": [("user", said)]}, {"configurable": {"thread_id": "1"}, "recursion_limit": 100})
    for tracks in middleware:
        tracks.close()
    recorder.save()


main()
