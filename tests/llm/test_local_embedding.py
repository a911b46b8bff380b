"""Embedders that run on this machine, with models that the tests make themselves, without a network."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest

from embedders import KNOWN, built_model2vec, built_onnx
from holdfast import HoldfastError, InvalidInput, Memory, MissingExtra, ModelFailed
from holdfast.llm.embedding import Embedded, Embedder, embedder, request
from holdfast.llm.model import complete


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Forbid the network, and tell the libraries so."""

    def refuse(*_: object) -> NoReturn:
        raise OSError("no network")

    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("FASTEMBED_CACHE_PATH", str(tmp_path / "cache"))
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)


def vectors(
    of: Embedder, *texts: str, query: bool = False
) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    answer = complete(of.queries if query else of.documents, request(texts), 5.0)
    assert isinstance(answer, Embedded)
    return answer.vectors


def unit(*vectors: list[float]) -> list[float]:
    """Return the mean of some vectors with length 1."""
    mean = np.mean(vectors, axis=0)
    unit: list[float] = (mean / np.linalg.norm(mean)).tolist()
    return unit


ASK = [0.0, 0.0, 0.0, 1.0]
TEA, DOG, RACE = (KNOWN[word] for word in ("tea", "dog", "race"))


def test_a_model2vec_model_is_loaded_from_a_folder(tmp_path: Path) -> None:
    made = embedder(f"model2vec:{built_model2vec(tmp_path)}")
    assert made.name == f"model2vec:{tmp_path}"
    tea, drink, unknown = vectors(made, "tea", "bevvy", "qqqq")
    np.testing.assert_allclose(tea, unit(TEA), atol=1e-3)
    assert np.dot(tea, drink) > 0.9
    assert not any(unknown)
    np.testing.assert_array_equal(vectors(made, "tea", query=True), [tea])


@pytest.mark.slow
@pytest.mark.parametrize("file", ["model.onnx", "onnx/model.onnx"])
def test_a_folder_of_fastembed_is_loaded(tmp_path: Path, file: str) -> None:
    made = embedder(f"fastembed:{built_onnx(tmp_path, file=file)}")
    assert made.name == f"fastembed:{tmp_path}"
    # The shorter texts are padded, which counts for nothing.
    found = vectors(made, "tea", "Tea dog race", "tea qqqq", "qqqq")
    np.testing.assert_allclose(found, [unit(TEA), unit(TEA, DOG, RACE), unit(TEA), [0.0] * 4], rtol=1e-5)
    np.testing.assert_array_equal(vectors(made, "tea", query=True), vectors(made, "tea"))
    too_long = "tea " * 8 + "dog " * 8
    np.testing.assert_allclose(vectors(made, too_long), [unit(TEA)], rtol=1e-5)


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [
        ({"pooling_mode": "mean"}, unit(TEA, RACE)),
        ({"pooling_mode": "cls"}, unit(TEA)),
        ({"pooling_mode_mean_tokens": False, "pooling_mode_cls_token": True}, unit(TEA)),
    ],
)
def test_the_pooling_of_a_folder_is_applied(
    tmp_path: Path, pooling: dict[str, object], expected: list[float]
) -> None:
    built_onnx(tmp_path, {"1_Pooling/config.json": pooling})
    made = embedder(f"fastembed:{tmp_path}")
    np.testing.assert_allclose(vectors(made, "tea race", "dog dog dog")[0], expected, rtol=1e-5)


@pytest.mark.parametrize(
    "pooling",
    [
        {},
        {"pooling_mode": ["mean", "cls"]},
        {"pooling_mode": "mean", "include_prompt": False},
    ],
)
def test_a_pooling_that_cannot_be_computed_is_refused(tmp_path: Path, pooling: dict[str, object]) -> None:
    built_onnx(tmp_path, {"1_Pooling/config.json": pooling})
    with pytest.raises(InvalidInput, match="1_Pooling"):
        embedder(f"fastembed:{tmp_path}")


def test_modules_that_an_onnx_file_lacks_are_named(tmp_path: Path) -> None:
    kinds = ["models.Transformer", "sentence_transformer.modules.pooling.Pooling", "models.Normalize"]
    modules = [{"type": f"sentence_transformers.{kind}"} for kind in kinds]
    built_onnx(tmp_path, {"modules.json": modules})
    embedder(f"fastembed:{tmp_path}")
    modules.append({"type": "sentence_transformers.models.Dense"})
    built_onnx(tmp_path, {"modules.json": modules})
    with pytest.raises(InvalidInput, match="Dense"):
        embedder(f"fastembed:{tmp_path}")


@pytest.mark.parametrize(
    ("config", "document", "query"),
    [
        ({}, [TEA], [TEA]),
        ({"prompts": {"query": "ask "}}, [TEA], [ASK, TEA]),
        ({"prompts": {"passage": "dog "}, "default_prompt_name": None}, [DOG, TEA], [TEA]),
        ({"prompts": {"document": "", "s": "ask "}, "default_prompt_name": "s"}, [TEA], [ASK, TEA]),
    ],
)
def test_the_prompts_of_a_folder_stand_before_documents_and_queries(
    tmp_path: Path, config: dict[str, object], document: list[list[float]], query: list[list[float]]
) -> None:
    built_onnx(tmp_path, {"config_sentence_transformers.json": config})
    made = embedder(f"fastembed:{tmp_path}")
    np.testing.assert_allclose(vectors(made, "tea"), [unit(*document)], rtol=1e-5)
    np.testing.assert_allclose(vectors(made, "tea", query=True), [unit(*query)], rtol=1e-5)


def cached(folder: Path, model: str) -> Path:
    """Return where fastembed looks for the files of a model that has been downloaded."""
    repository = folder / "cache" / f"models--{model.replace('/', '--')}"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("0" * 40)
    return repository / "snapshots" / ("0" * 40)


def test_a_model_that_fastembed_knows_is_loaded_by_its_name(tmp_path: Path) -> None:
    files = cached(tmp_path, "jinaai/jina-embeddings-v3")
    built_onnx(files, file="onnx/model.onnx", tasks=True)
    (files / "onnx" / "model.onnx_data").touch()
    made = embedder("fastembed:jinaai/jina-embeddings-v3")
    assert made.name == "fastembed:jinaai/jina-embeddings-v3"
    task_of_queries, task_of_passages = np.eye(2, 4) + np.array(TEA)
    np.testing.assert_allclose(vectors(made, "tea"), [unit(task_of_passages.tolist())], rtol=1e-5)
    np.testing.assert_allclose(vectors(made, "tea", query=True), [unit(task_of_queries.tolist())], rtol=1e-5)


@pytest.mark.parametrize("name", ["fastembed:BAAI/bge-small-en-v1.5", "model2vec:nobody/nothing"])
def test_a_model_that_cannot_be_downloaded_is_named(name: str) -> None:
    with pytest.raises(ModelFailed, match=name) as raised:
        embedder(name)
    assert raised.value.reason == "unavailable"


def test_what_fastembed_does_not_know_is_not_asked_for(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="neither a folder nor a model"):
        embedder(f"fastembed:{tmp_path / 'nothing'}")
    # Longer than the name of a file may be.
    with pytest.raises(HoldfastError):
        embedder(f"fastembed:{'x' * 400}")
    assert not (tmp_path / "cache").exists()


def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelFailed, match="could not be loaded"):
        embedder(f"model2vec:{tmp_path}")
    with pytest.raises(InvalidInput, match=r"model\.onnx"):
        embedder(f"fastembed:{tmp_path}")


@pytest.mark.parametrize("file", ["model.onnx", "tokenizer.json", "1_Pooling/config.json"])
def test_a_damaged_file_of_a_model_is_explained(tmp_path: Path, file: str) -> None:
    (built_onnx(tmp_path) / file).write_bytes(b"nothing")
    with pytest.raises(ModelFailed, match="could not be loaded"):
        embedder(f"fastembed:{tmp_path}")


@pytest.mark.parametrize("extra", ["model2vec", "fastembed"])
def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, extra: str) -> None:
    monkeypatch.setitem(sys.modules, extra, None)
    with pytest.raises(MissingExtra, match=rf"pip install '\.\[{extra}\]'"):
        embedder(f"{extra}:x")


def test_auto_takes_what_the_environment_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    static, onnx = built_model2vec(tmp_path / "static"), built_onnx(tmp_path / "onnx")
    monkeypatch.chdir(tmp_path)
    for value, name in (
        ("", None),
        (str(static), f"model2vec:{static}"),
        ("./static", f"model2vec:{static}"),
        (f"fastembed:{onnx}", f"fastembed:{onnx}"),
    ):
        monkeypatch.setenv("HOLDFAST_EMBED", value)
        with Memory(":memory:", user="ada", embed="auto") as memory:
            memory.chat("monday").append(role="user", content="I like tea.")
            memory.learning.work()
            hits = memory.recall("bevvy")
            assert [progress.model for progress in memory.learning.embedding()] == ([name] if name else [])
            assert ("meaning" in hits[0].why if hits else False, hits.degraded) == (name is not None, None)
    # Nobody is asked who does not want it.
    with Memory(":memory:", user="ada") as memory:
        memory.learning.work()
        assert memory.learning.embedding() == []


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        ("nowhere", InvalidInput, "'nowhere', which is no folder"),
        ("~nobody/model", InvalidInput, "is no folder"),
        ("fastembed:BAAI/bge-small-en-v1.5", InvalidInput, "is no folder"),
        ("empty", InvalidInput, "'empty', which has no model"),
        ("broken", ModelFailed, "could not be loaded"),
        ("x" * 3_000, InvalidInput, "3,000 bytes"),
        ("a\x1b[2Jb", InvalidInput, "a control character"),
        ("a\udcffb", InvalidInput, "half a character"),
        ("nobody:model", HoldfastError, "nobody"),
    ],
)
def test_an_environment_that_names_no_model_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, error: type[HoldfastError], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "model.safetensors").write_bytes(b"\xff" * 64)
    monkeypatch.setenv("HOLDFAST_EMBED", value)
    with pytest.raises(error, match=words) as raised:
        Memory(":memory:", user="ada", embed="auto")
    assert raised.value.todo
    assert raised.value.what.isprintable()
