"""The memtable: the newest documents, too few for a segment, in lists that grow without copying."""

from __future__ import annotations

from collections import Counter

from holdfast.search.segment import MAX_FREQUENCY, IndexedDocument, read_words


class Memtable:
    """The index of the newest documents, added one by one."""

    def __init__(self) -> None:
        self.documents: list[IndexedDocument] = []
        self._postings: dict[int, tuple[list[int], list[int]]] = {}
        # About what the texts and the lists take, in bytes.
        self.nbytes = 0

    def add(self, document: IndexedDocument) -> tuple[int, bool]:
        """Add a document; return the number of its words and whether they tell a time.

        Linear in its words.
        """
        terms, words, tells_time = read_words(document.text)
        self.documents.append(document)
        self.nbytes += len(document.text) + 100 * len(terms)
        for term, frequency in Counter(terms).items():
            docs, frequencies = self._postings.setdefault(term, ([], []))
            docs.append(document.number)
            frequencies.append(min(frequency, MAX_FREQUENCY))
        return words, tells_time

    def postings(self, term: int) -> tuple[list[int], list[int]]:
        """Return the numbers of the documents with a term, rising, and its frequency in each."""
        return self._postings.get(term, ([], []))
