"""What may be passed as an embedder, and what its vectors are checked for."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pytest
from llm_models import KEY
from numpy.typing import NDArray
from pydantic_ai import Embedder as PydanticEmbedder
from pydantic_ai.embeddings import TestEmbeddingModel

import llm_server
from embedders import Letters, aletters, embeddings, letters, letters_numpy
from holdfast import InvalidInput, MissingExtra, ModelFailed
from holdfast.llm.embedding import Embed, Embedded, Embedder, embedder, request
from holdfast.llm.model import acomplete, complete
from llm_server import Server
from tables import each

server = llm_server.server


class Arrays:
    """As objects of sentence-transformers answer."""

    model_name = "of letters"

    def embed_documents(self, texts: list[str]) -> NDArray[np.float32]:
        return letters_numpy(texts)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        row: NDArray[np.float32] = letters_numpy([text])[0]
        return row


class Async:
    """Only the awaited methods."""

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        return letters(texts)

    async def aembed_query(self, text: str) -> list[float]:
        return letters([text])[0]


class Both(Async, Letters):
    """As objects of LangChain have them."""

    model = "of letters"


FORMS: dict[str, tuple[Embed, str]] = {
    "function": (letters, "letters"),
    "function of arrays": (letters_numpy, "letters_numpy"),
    "awaited function": (aletters, "aletters"),
    "object": (Letters(), "Letters"),
    "object of arrays": (Arrays(), "Arrays:of letters"),
    "object to await": (Async(), "Async"),
    "object of both": (Both(), "Both:of letters"),
}


def vectors(of: Embedder, texts: Sequence[str], *, query: bool = False) -> list[list[float]]:
    answer = complete(of.queries if query else of.documents, request(texts), 5.0)
    assert isinstance(answer, Embedded)
    rows: list[list[float]] = answer.vectors.tolist()
    return rows


@each("form", FORMS)
def test_every_form_embeds(form: str) -> None:
    embed, name = FORMS[form]
    made = embedder(embed)
    assert made.name == name
    expected = np.array(letters(["a tea", "b"]))
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(vectors(made, ["a tea", "b"]), expected, rtol=1e-6)
    np.testing.assert_allclose(vectors(made, ["b"], query=True), expected[1:], rtol=1e-6)
    answer = asyncio.run(acomplete(made.documents, request(["b"]), 5.0))
    assert isinstance(answer, Embedded)


@each(
    ("given", "said"),
    [
        (None, "no list of vectors"),
        ([1.0, 2.0], "no list of vectors of numbers"),
        ([[1.0, 2.0], [1.0]], "one length"),
        ([[Decimal(1)], [Decimal(2)]], "of numbers"),
        ([[], []], "vectors of 0 numbers"),
        ([[0.5] * 20_000] * 2, "vectors of 20,000 numbers"),
        ([[1.0], [float("nan")]], "not finite"),
    ],
)
def test_what_is_no_list_of_vectors_is_named(given: object, said: str) -> None:
    def embed(_: Sequence[str]) -> object:
        return given

    with pytest.raises(ModelFailed, match=said) as raised:
        vectors(embedder(embed), ["a", "b"])  # type: ignore[arg-type]  # what a program may pass all the same
    assert raised.value.reason == "answer"


def test_vectors_have_length_one_however_large_they_were() -> None:
    made = embedder(lambda _: [[3e300, 4e300], [3e-300, 4e-300], [0.0, 0.0]])
    np.testing.assert_allclose(
        vectors(made, ["a", "b", "c"]), [[0.6, 0.8], [0.6, 0.8], [0.0, 0.0]], rtol=1e-6
    )


def test_an_error_of_the_embedder_is_explained() -> None:
    def embed(_: Sequence[str]) -> list[list[float]]:
        raise ConnectionRefusedError(KEY)

    with pytest.raises(ModelFailed, match="cannot be reached") as raised:
        vectors(embedder(embed), ["a"])
    assert raised.value.reason == "unavailable"
    assert KEY not in str(raised.value)


@each("given", [5, None, b"x", Letters, object()])
def test_what_embeds_nothing_is_refused(given: object) -> None:
    with pytest.raises(InvalidInput, match="embeds nothing"):
        embedder(given)  # type: ignore[arg-type]  # what a program may pass all the same


@each("name", ["", "openai", ":x", "openai:", "model2vec:", "fastembed:", "nonsense:model", "a\0b"])
def test_a_name_that_names_no_model_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput):
        embedder(name)


# Names


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    with pytest.raises(MissingExtra, match="pip install"):
        embedder("openai:x")


def test_a_named_embedder_asks_its_provider(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    server.reply = lambda body: (200, embeddings(body, tokens=7))
    made = embedder("openai:text-embedding-3-small")
    assert made.name == "openai:text-embedding-3-small"
    for _ in range(2):
        answer = complete(made.documents, request(["tea", "b"]), 5.0)
    assert isinstance(answer, Embedded)
    assert (answer.vectors.shape, answer.prompt_tokens, answer.answer_tokens) == ((2, 26), 7, 0)
    assert server.requests[0]["input"] == ["tea", "b"]
    assert len(server.requests) == 2


def test_an_embedder_object_of_pydantic_ai_answers_and_counts() -> None:
    made = embedder(PydanticEmbedder(TestEmbeddingModel(dimensions=4)))
    assert made.name == "Embedder:test"
    assert vectors(made, ["a", "b"]) == [[0.5] * 4] * 2
    assert vectors(made, ["a"], query=True) == [[0.5] * 4]
    assert (complete(made.documents, request(["one two three"])).prompt_tokens or 0) > 0
