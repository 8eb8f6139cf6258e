"""The text-to-SQL agent of smolagents' documentation (huggingface.co/docs/smolagents/examples/text_to_sql).

A `CodeAgent` with one tool, `sql_engine`, over receipts and waiters, written anew: the example is in no package. There
are more rows than in the documentation, and more questions.
"""

from __future__ import annotations

import random
import sqlite3
from typing import Any

from recorder import Recorder
from smolagents import ChatMessage, CodeAgent, MessageRole, Model, tool

WAITERS = ("Corey Johnson", "Michael Watts", "Margaret James", "Ada Byron", "Tove Skog", "Luis Prado")
GUESTS = ("Alan Payne", "Alex Mason", "Woodrow Wilson", "Nora Lind", "Ines Roth", "Omar Sadek", "Kaya Bell", "Ida Moss")


def receipts() -> sqlite3.Connection:
    rng, connection = random.Random(7), sqlite3.connect(":memory:", check_same_thread=False)
    connection.execute("CREATE TABLE receipts (receipt_id INTEGER, customer_name TEXT, price REAL, tip REAL)")
    connection.execute("CREATE TABLE waiters (receipt_id INTEGER, waiter_name TEXT)")
    for number in range(1001, 1201):
        price = rng.randint(500, 9000) / 100
        row = (number, rng.choice(GUESTS), price, round(price * rng.randint(0, 20) / 100, 2))
        connection.execute("INSERT INTO receipts VALUES (?, ?, ?, ?)", row)
        connection.execute("INSERT INTO waiters VALUES (?, ?)", (number, rng.choice(WAITERS)))
    return connection


DATABASE = receipts()


@tool
def sql_engine(query: str) -> str:
    """Run a SQL query. Returns the rows as text.

    There are two tables: receipts (receipt_id INTEGER, customer_name TEXT, price REAL, tip REAL) and waiters
    (receipt_id INTEGER, waiter_name TEXT).

    Args:
        query: The query, correct SQL for SQLite.
    """
    return "\n".join(map(str, DATABASE.execute(query)))


def conversation() -> list[tuple[str, list[str]]]:
    """Questions, and the queries of each. Later ones look up receipts that earlier results showed."""
    talk: list[tuple[str, list[str]]] = []
    shown = []
    for waiter in WAITERS:
        largest = (
            "SELECT r.receipt_id, r.customer_name, r.price, r.tip FROM receipts r JOIN waiters w ON "
            f"r.receipt_id = w.receipt_id WHERE w.waiter_name = '{waiter}' ORDER BY r.price DESC LIMIT 15"
        )
        rows = list(DATABASE.execute(largest))
        shown.append(rows[0])
        guest = (
            "SELECT receipt_id, price, tip FROM receipts "
            f"WHERE customer_name = '{rows[0][1]}' AND receipt_id <> {rows[0][0]} ORDER BY tip DESC LIMIT 12"
        )
        talk.append(
            (f"Which receipts of {waiter} are the largest, and what else did that guest pay?", [largest, guest])
        )
    for row in shown[:4]:
        again = f"SELECT price, tip, tip / price FROM receipts WHERE receipt_id = {row[0]}"
        talk.append((f"Check the largest receipt of {row[1]} again: how large was the tip?", [again]))
    return talk


class Scripted(Model):
    def __init__(self, recorder: Recorder, steps: list[str]) -> None:
        super().__init__(model_id="scripted")
        self.recorder, self.steps = recorder, steps

    def generate(self, messages: Any, **_: Any) -> ChatMessage:
        texts = [text_of(message) for message in messages]
        step = self.steps.pop(0)
        self.recorder.request(texts[0], texts[1:], [], [] if step.startswith("final") else [{"code": step}])
        return ChatMessage(role=MessageRole.ASSISTANT, content=f"Thought: next.\n<code>\n{step}\n</code>")


def text_of(message: Any) -> str:
    content = message["content"] if isinstance(message, dict) else message.content
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content or ())


def main() -> None:
    recorder, talk, steps = Recorder(), conversation(), []
    for _, queries in talk:
        steps += [f'print(sql_engine("{query}"))' for query in queries] + ['final_answer("As the rows say.")']
    agent = CodeAgent([sql_engine], Scripted(recorder, steps), verbosity_level=0)
    if recorder.settings is None:
        ask(agent, talk)
    else:
        from remora.integrations.smolagents import TwoTracks

        with TwoTracks(agent, **recorder.settings):
            ask(agent, talk)
    recorder.save()


def ask(agent: Any, talk: list[tuple[str, list[str]]]) -> None:
    for number, (said, _) in enumerate(talk):
        agent.run(said, reset=number == 0)


main()
