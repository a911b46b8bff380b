# ruff: noqa: INP001 - a script, not a package
"""Make `src/holdfast/text/vectors.txt` and `.bin`: each word as all-MiniLM-L6-v2 encodes it alone.

    pip install sentence-transformers
    python scripts/make_vectors.py /path/to/the/encoder words.txt

The words are those of the encoder's own vocabulary, which has them by frequency, and then those of the given
file. The vectors are centred, reduced to their main directions, and stored as bytes.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

TABLE = Path(__file__).parents[1] / "src/holdfast/text/vectors.bin"
DIMENSIONS = 32


def main() -> None:
    """Read the words, encode them, write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("encoder", type=Path)
    parser.add_argument("words", type=Path, help="further words, one on each line")
    given = parser.parse_args()
    known = (given.encoder / "vocab.txt").read_text("utf-8").split()
    words = [word for word in known if re.fullmatch("[a-z]+", word)]
    words = list(dict.fromkeys([*words, *given.words.read_text("utf-8").split()]))
    encoder = SentenceTransformer(str(given.encoder), device="cpu")
    short = reduced(encoder.encode(words, batch_size=512))
    TABLE.write_bytes(short.tobytes())
    TABLE.with_suffix(".txt").write_text("".join(f"{word}\n" for word in words), "utf-8")


def reduced(vectors: NDArray[np.float32]) -> NDArray[np.int8]:
    """Keep the main directions, at length 1, in bytes."""
    centred = vectors - vectors.mean(axis=0)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    short = (left * sizes)[:, :DIMENSIONS]
    short /= np.abs(short).max(axis=1, keepdims=True)
    return np.round(short * 127).astype(np.int8)


if __name__ == "__main__":
    main()
