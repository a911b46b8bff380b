"""The sample that ships with the package: conversations of one invented person, and questions about them."""

import json
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Question:
    """A question, answered by the message of the chat `answer_in` that has the words `expect`."""

    question: str
    answer_in: str
    expect: str


def questions() -> list[Question]:
    """Read the questions, in the order in which they are asked."""
    return [Question(**row) for row in json.loads(_file("questions.json").read_text("utf-8"))]


def sessions() -> AbstractContextManager[Path]:
    """Return the conversations as a file that can be imported."""
    return resources.as_file(_file("sessions.jsonl"))


def _file(name: str) -> resources.abc.Traversable:
    return resources.files("holdfast_cli.demo") / name
