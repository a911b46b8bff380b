"""Embedders to test with: of letters, of a few known words, a model2vec model, a provider's answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import ascii_lowercase

import numpy as np
from numpy.typing import NDArray

from llm_server import Body

# Words near each other in meaning have vectors near each other.
KNOWN: dict[str, list[float]] = {
    "tea": [1.0, 0.1, 0.0, 0.0],
    "bevvy": [0.9, 0.2, 0.0, 0.1],
    "dog": [0.0, 1.0, 0.1, 0.0],
    "pet": [0.1, 0.9, 0.2, 0.0],
    "marathon": [0.0, 0.0, 1.0, 0.1],
    "race": [0.0, 0.1, 0.9, 0.2],
}


def letters(texts: Sequence[str]) -> list[list[float]]:
    """Count the letters of each text, and one more of each."""
    return [[1.0 + text.lower().count(letter) for letter in ascii_lowercase] for text in texts]


def letters_numpy(texts: Sequence[str]) -> NDArray[np.float32]:
    """Do the same, as an array."""
    return np.array(letters(texts), np.float32)


async def aletters(texts: Sequence[str]) -> list[list[float]]:
    """Do the same, awaited."""
    return letters(texts)


class Letters:
    """The same as an object."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Count the letters of each text."""
        return letters(texts)

    def embed_query(self, text: str) -> list[float]:
        """Count the letters of a text."""
        return letters([text])[0]


def meaning(texts: Sequence[str]) -> list[list[float]]:
    """Add up the vectors of the known words of each text; all zero for one without any."""
    found = []
    for text in texts:
        words = [word.strip(".,:?!'\"").removesuffix("s") for word in text.lower().split()]
        rows = [KNOWN[word] for word in words if word in KNOWN]
        found.append(np.sum(rows, axis=0).tolist() if rows else [0.0] * 4)
    return found


def built_model2vec(folder: Path) -> Path:
    """Write a model2vec model of the known words into a folder."""
    from model2vec import StaticModel
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.normalizers import Lowercase
    from tokenizers.pre_tokenizers import Whitespace

    rows = {"[UNK]": [0.0] * 4, **KNOWN}
    tokenizer = Tokenizer(WordLevel({word: row for row, word in enumerate(rows)}, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = Lowercase(), Whitespace()
    StaticModel(np.array(list(rows.values()), np.float32), tokenizer).save_pretrained(str(folder))
    return folder


def built_onnx(
    folder: Path, files: Mapping[str, object] = {}, *, file: str = "model.onnx", tasks: bool = False
) -> Path:
    """Write an ONNX model of the known words into a folder, with the files of sentence-transformers.

    It returns a vector of each token, with `tasks` plus that of the task. The vector of the padding is one
    that must not be counted. `files` are JSON files that it has besides, or instead.
    """
    from onnx import TensorProto, checker, helper, numpy_helper, save
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.normalizers import Lowercase
    from tokenizers.pre_tokenizers import Whitespace

    rows = {"[PAD]": [9.0] * 4, "[UNK]": [0.0] * 4, "ask": [0.0, 0.0, 0.0, 1.0], **KNOWN}
    tokenizer = Tokenizer(WordLevel({word: row for row, word in enumerate(rows)}, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = Lowercase(), Whitespace()
    inputs = [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["texts", "tokens"])]
    nodes = [helper.make_node("Gather", ["rows", "input_ids"], ["last_hidden_state"])]
    tables = [numpy_helper.from_array(np.array(list(rows.values()), np.float32), "rows")]
    if tasks:
        inputs.append(helper.make_tensor_value_info("task_id", TensorProto.INT64, []))
        nodes[0].output[0] = "words"
        nodes.append(helper.make_node("Gather", ["tasks", "task_id"], ["task"]))
        nodes.append(helper.make_node("Add", ["words", "task"], ["last_hidden_state"]))
        tables.append(numpy_helper.from_array(np.eye(5, 4, dtype=np.float32), "tasks"))
    output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["texts", "tokens", 4])
    graph = helper.make_graph(nodes, "words", inputs, [output], tables)
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)])
    checker.check_model(model)
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    save(model, folder / file)
    tokenizer.save(str(folder / "tokenizer.json"))
    usual = {
        "config.json": {"pad_token_id": 0},
        "tokenizer_config.json": {"model_max_length": 8, "pad_token": "[PAD]"},
        "1_Pooling/config.json": {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False},
    }
    for name, content in {**usual, **files}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(content))
    return folder


def embeddings(body: Body, tokens: int = 1) -> str:
    """Write the body of an OpenAI server's answer to a request for embeddings."""
    texts = body["input"]
    assert isinstance(texts, list)
    data = [
        {"object": "embedding", "index": place, "embedding": row} for place, row in enumerate(letters(texts))
    ]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return json.dumps({"object": "list", "data": data, "model": body["model"], "usage": usage})
