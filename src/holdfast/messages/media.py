"""Media in messages: images, files and sound, their tokens, and their form for OpenAI and Anthropic."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterator, Mapping, Sequence

from holdfast.text.clean import clean

IMAGE_PARTS = frozenset({"image", "image_url", "input_image"})
FILE_PARTS = frozenset({"file", "input_file", "document", "input_audio", "audio", "video"})
_MEDIA = IMAGE_PARTS | FILE_PARTS
_SOUND_PARTS = frozenset({"input_audio", "audio"})

IMAGE_TOKENS = 1_600
LOW_DETAIL_TOKENS = 85
PAGE_TOKENS = 3_000
# Bytes of a PDF that are taken for one page.
_PAGE_BYTES = 50_000
# A tenth of a second at 128 kbit/s, which is one token.
_SOUND_BYTES = 1_600
_IMAGE_TYPES = {f"image/{kind}" for kind in ("jpeg", "png", "gif", "webp")}
# Bytes per character of base64.
_BASE64 = 3 / 4

Part = Mapping[str, object]


def content_of(raw: Part | None) -> Sequence[object]:
    """Return the parts of a payload in the format of OpenAI or Anthropic; none where its content is text."""
    if raw is None:
        return ()
    # The line of a session log wraps the payload.
    source = _inner(raw, "message")
    content = source.get("content", source.get("output"))
    return content if isinstance(content, list) else ()


def _inner(part: Part, key: str) -> Part:
    """Return the object that a part has under a key, or else the part."""
    inner = part.get(key)
    return inner if isinstance(inner, Mapping) else part


def media(content: Sequence[object]) -> Iterator[Part]:
    """Yield the parts that are not text, also those in the results of calls."""
    for part in content:
        if isinstance(part, Mapping):
            inner = part.get("content") if part.get("type") == "tool_result" else None
            for item in inner if isinstance(inner, list) else (part,):
                if isinstance(item, Mapping) and str(item.get("type")) in _MEDIA:
                    yield item


def has_media(raw: Part | None) -> bool:
    """Return whether a payload has parts that are not text."""
    # Nearly all content is text.
    if raw is None or type(raw.get("content")) is str:
        return False
    return any(True for _ in media(content_of(raw)))


def media_tokens(raw: Part | None, count: Callable[[str], int]) -> int:
    """Return the estimated tokens of the images, files and sound of a payload; 0 where all is text.

    An image takes 1,600 tokens, to which Anthropic scales larger ones down
    (https://platform.claude.com/docs/en/build-with-claude/vision); OpenAI counts 85 and 170 for each of at
    most eight tiles, 1,445 in all, and 85 at low detail
    (https://platform.openai.com/docs/guides/images-vision). Some newer models take up to three times as much
    of large images. Files are taken for PDFs, of which a page takes 1,500 to 3,000 tokens
    (https://platform.claude.com/docs/en/build-with-claude/pdf-support): 3,000 for each 50 kB, and for one
    that is only named; a document that is plain text takes what the text does. Sound takes ten tokens a
    second (https://platform.openai.com/docs/guides/realtime-costs), at 128 kbit/s. The encoded bytes are
    never counted as text.
    """
    return sum(_tokens(part, count) for part in media(content_of(raw)))


def _tokens(part: Part, count: Callable[[str], int]) -> int:
    if part["type"] in IMAGE_PARTS:
        image = part.get("image_url")
        detail = image.get("detail") if isinstance(image, Mapping) else part.get("detail")
        return LOW_DETAIL_TOKENS if detail == "low" else IMAGE_TOKENS
    if (text := _text_of(part)) is not None:
        return count(text)
    size = _encoded_size(part) * _BASE64
    if part["type"] in _SOUND_PARTS:
        return math.ceil(size / _SOUND_BYTES)
    return PAGE_TOKENS * max(1, math.ceil(size / _PAGE_BYTES))


def _text_of(part: Part) -> str | None:
    """Return the text of a document that has nothing else, in Anthropic's format."""
    source = part.get("source")
    if not isinstance(source, Mapping):
        return None
    if source.get("type") == "text" and isinstance(source.get("data"), str):
        return clean(str(source["data"]))
    content = source.get("content") if source.get("type") == "content" else None
    if isinstance(content, str):
        return clean(content)
    if isinstance(content, list) and not any(media(content)):
        return clean("\n".join(str(block.get("text", "")) for block in content if isinstance(block, Mapping)))
    return None


def _encoded_size(part: Part) -> int:
    """Return the length of the encoded data of a part: that of the longest text in it."""
    holders = [part, *(value for value in part.values() if isinstance(value, Mapping))]
    values = [value for holder in holders for value in holder.values()]
    return max((len(value) for value in values if isinstance(value, str)), default=0)


def to_openai(part: Part) -> dict[str, object] | None:
    """Return a part as OpenAI takes it from a user; None for one that it cannot read."""
    kind = part.get("type")
    if kind in IMAGE_PARTS:
        return _image(part)
    if kind == "input_audio":
        return dict(part) if isinstance(part.get("input_audio"), Mapping) else None
    if (text := _text_of(part)) is not None:
        return {"type": "text", "text": text}
    return _file(part)


def _image(part: Part) -> dict[str, object] | None:
    image = part.get("image_url")
    if isinstance(image, Mapping):
        return {"type": "image_url", "image_url": dict(image)} if isinstance(image.get("url"), str) else None
    url = image if isinstance(image, str) else _address(part)
    if url is None:
        return None
    detail = {"detail": part["detail"]} if isinstance(part.get("detail"), str) else {}
    return {"type": "image_url", "image_url": {"url": url, **detail}}


def _file(part: Part) -> dict[str, object] | None:
    source = _inner(part, "file")
    keys = ("file_id", "file_data", "filename")
    given = {key: source[key] for key in keys if isinstance(source.get(key), str)}
    if "file_data" not in given and "file_id" not in given:
        data = _address(part)
        if data is None or not data.startswith("data:"):
            # It takes no addresses of files.
            return None
        given = {"filename": str(part.get("title") or "document.pdf"), "file_data": data}
    return {"type": "file", "file": given}


def _address(part: Part) -> str | None:
    """Return the address of a part in the format of Anthropic or MCP: a data URL where the data is in it."""
    source = _inner(part, "source")
    if isinstance(source.get("url"), str):
        return str(source["url"])
    kinds = (source.get(key) for key in ("media_type", "mimeType", "mime_type"))
    kind = next((candidate for candidate in kinds if isinstance(candidate, str)), None)
    data = source.get("data")
    return f"data:{kind};base64,{data}" if kind and isinstance(data, str) and data else None


def to_anthropic(part: Part) -> dict[str, object] | None:
    """Return a part as a block that Anthropic takes; None for one that it cannot read, such as sound."""
    kind = part.get("type")
    if kind in IMAGE_PARTS:
        written = _image(part)
        image = written["image_url"] if written else None
        url = image.get("url") if isinstance(image, Mapping) else None
        source = _provider_file(part) or _source(url, _IMAGE_TYPES)
        return {"type": "image", "source": source} if source else None
    if kind in _SOUND_PARTS:
        return None
    file = _inner(part, "file")
    address = file.get("file_data") or file.get("file_url") or _address(part)
    source = _provider_file(part) or _written(part) or _source(address, {"application/pdf"})
    title = file.get("title") or file.get("filename")
    beside = {"title": title, "context": part.get("context"), "citations": part.get("citations")}
    kept = {key: value for key, value in beside.items() if value and isinstance(value, str | Mapping)}
    return {"type": "document", "source": source, **kept} if source else None


def _provider_file(part: Part) -> dict[str, object] | None:
    """Return the source of a file that is stored with Anthropic."""
    source = part.get("source")
    if not isinstance(source, Mapping) or source.get("type") != "file":
        return None
    return {"type": "file", "file_id": source["file_id"]} if isinstance(source.get("file_id"), str) else None


def _written(part: Part) -> dict[str, object] | None:
    """Return the source of a document whose content is in the message, as text or as parts."""
    source, text = part.get("source"), _text_of(part)
    content = source.get("content") if isinstance(source, Mapping) else None
    if isinstance(content, list):
        items = [item for item in content if isinstance(item, Mapping)]
        blocks = [
            to_anthropic(item) if str(item.get("type")) in IMAGE_PARTS else _plain(item) for item in items
        ]
        kept = [block for block in blocks if block]
        return {"type": "content", "content": kept} if kept else None
    if text is None or not text.strip():
        return None
    return {"type": "text", "media_type": "text/plain", "data": text}


def _plain(part: Part) -> dict[str, object] | None:
    text = part.get("text")
    return {"type": "text", "text": text} if isinstance(text, str) and text.strip() else None


def _source(address: object, kinds: Container[str]) -> dict[str, object] | None:
    """Return the source for an address of the web, or for a data URL of one of these types."""
    if not isinstance(address, str):
        return None
    if address.startswith(("https://", "http://")):
        return {"type": "url", "url": address}
    head, _, data = address.partition(",")
    kind = head.removeprefix("data:").removesuffix(";base64").split(";")[0].lower()
    kind = "image/jpeg" if kind == "image/jpg" else kind
    if data and head.startswith("data:") and head.endswith(";base64") and kind in kinds:
        return {"type": "base64", "media_type": kind, "data": data}
    return None
