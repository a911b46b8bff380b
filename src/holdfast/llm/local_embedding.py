"""Loaders of embedders that run on this machine: from a folder or a name to functions of texts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias

from holdfast.errors import HoldfastError, InvalidInput, MissingExtra, ModelFailed
from holdfast.llm.errors import redacted

if TYPE_CHECKING:
    from fastembed import TextEmbedding

EmbedTexts: TypeAlias = Callable[[list[str]], object]
# The names of fastembed for the poolings of sentence-transformers, by their present and former names.
_POOLINGS = {
    "mean": "MEAN",
    "pooling_mode_mean_tokens": "MEAN",
    "cls": "CLS",
    "pooling_mode_cls_token": "CLS",
}
# The modules that an ONNX file covers.
_MODULES = {"Transformer", "Pooling", "Normalize"}
# Texts that are computed at once: each takes the memory of the longest, over 10 MB in a usual model.
_BATCH = 16
_registering = Lock()


def from_model2vec(place: str, name: str) -> tuple[EmbedTexts, EmbedTexts]:
    """Return the functions that embed documents and queries by a model of model2vec."""
    try:
        from model2vec import StaticModel
    except ImportError as error:
        raise MissingExtra.of("model2vec") from error
    with _loading(name):
        model = StaticModel.from_pretrained(place, force_download=False)
    return model.encode, model.encode


def from_fastembed(place: str, name: str) -> tuple[EmbedTexts, EmbedTexts]:
    """Return the functions that embed documents and queries by a model of fastembed, in a folder or named."""
    try:
        # Takes most of a second to load.
        from fastembed import TextEmbedding
    except ImportError as error:
        raise MissingExtra.of("fastembed") from error
    with _loading(name):
        if (folder := Path(place)).is_dir():
            return _of_folder(folder.resolve())
        if place.lower() not in _known():
            raise InvalidInput(
                f"{redacted(name)!r} is neither a folder nor a model that fastembed knows.",
                "Pass 'fastembed:PATH', or the name of a model from fastembed's own list.",
            )
        model = TextEmbedding(place)
    return (
        lambda texts: list(model.passage_embed(texts, batch_size=_BATCH)),
        lambda texts: list(model.query_embed(texts, batch_size=_BATCH)),
    )


@contextmanager
def _loading(name: str) -> Iterator[None]:
    """Turn the errors of a library that loads a model into ModelFailed."""
    try:
        yield
    except HoldfastError:
        raise
    except Exception as error:  # those of onnxruntime have no narrower base
        raise ModelFailed(
            f"The embedder {redacted(name)} could not be loaded ({type(error).__name__}).",
            "Pass the folder of a complete model, or a name: such a model is downloaded at its first use.",
            reason="unavailable",
        ) from error


def _known() -> set[str]:
    from fastembed import TextEmbedding

    return {str(model["model"]).lower() for model in TextEmbedding.list_supported_models()}


def _of_folder(folder: Path) -> tuple[EmbedTexts, EmbedTexts]:
    """Return the functions of a model of sentence-transformers that has been exported to ONNX."""
    model = _register(folder, _file(folder), _pooling(folder))
    documents, queries = _prompts(folder)

    def embed(prompt: str, texts: list[str]) -> object:
        return list(model.embed([prompt + text for text in texts], batch_size=_BATCH))

    return lambda texts: embed(documents, texts), lambda texts: embed(queries, texts)


def _register(folder: Path, file: str, pooling: str) -> TextEmbedding:
    """Load a model under a name that stands for all of its description: fastembed knows each name once."""
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    name = f"{folder} {file} {pooling}"
    with _registering:
        if name.lower() not in _known():
            TextEmbedding.add_custom_model(
                model=name,
                pooling=PoolingType[pooling],
                # All vectors are given length 1 afterwards.
                normalization=False,
                # Required, and not used: the files are in the folder.
                sources=ModelSource(url=folder.as_uri()),
                dim=0,
                model_file=file,
            )
    return TextEmbedding(name, specific_model_path=str(folder))


def _file(folder: Path) -> str:
    for file in ("model.onnx", "onnx/model.onnx"):
        if (folder / file).is_file():
            return file
    raise InvalidInput(
        f"There is neither model.onnx nor onnx/model.onnx in {str(folder)!r}.",
        "Export the model to ONNX, or pass another folder.",
    )


def _pooling(folder: Path) -> str:
    """Return how the vectors of tokens become one of a text."""
    config = _read_json(folder, "1_Pooling/config.json", {})
    given = config.get("pooling_mode") or [
        key for key, value in config.items() if key.startswith("pooling_mode_") and value
    ]
    modes = given if isinstance(given, list) else [given]
    if len(modes) != 1 or modes[0] not in _POOLINGS or not config.get("include_prompt", True):
        raise _no_support(folder, "has no 1_Pooling/config.json that says 'mean' or 'cls'")
    types = {str(module["type"]).rpartition(".")[2] for module in _read_json(folder, "modules.json", [])}
    if more := types - _MODULES:
        raise _no_support(folder, f"has the modules {', '.join(sorted(more))}, which an ONNX file lacks")
    return _POOLINGS[modes[0]]


def _no_support(folder: Path, what: str) -> InvalidInput:
    return InvalidInput(
        f"The model in {str(folder)!r} {what}.",
        "Pass the folder of another model of sentence-transformers, or a function that embeds.",
    )


def _prompts(folder: Path) -> tuple[str, str]:
    """Return the prefixes of documents and of queries."""
    config = _read_json(folder, "config_sentence_transformers.json", {})
    prompts = config.get("prompts") or {}
    usual = prompts.get(config.get("default_prompt_name"), "")
    documents = next((prompts[key] for key in ("document", "passage", "corpus") if key in prompts), usual)
    return documents, prompts.get("query", usual)


def _read_json(folder: Path, file: str, otherwise: Any) -> Any:
    path = folder / file
    return json.loads(path.read_text("utf-8")) if path.is_file() else otherwise
