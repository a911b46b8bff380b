"""The memtable: the newest documents, too few for a segment, in lists that grow without copying."""

from __future__ import annotations

from collections import Counter

from holdfast.search.segment import MAX_FREQUENCY, IndexedDocument, read_output, read_words


class Memtable:
    """The index of the newest documents, added one by one."""

    def __init__(self) -> None:
        self.documents: list[IndexedDocument] = []
        self._postings: dict[int, tuple[list[int], list[int]]] = {}
        # The passages of all documents.
        self.places = 0
        # About what the texts and the lists take, in bytes.
        self.nbytes = 0

    def add(self, document: IndexedDocument) -> tuple[list[int], int, bool]:
        """Add a document; return the words of its passages and of its output, and whether they tell a time.

        Linear in its words.
        """
        first, tells_time = self.places, False
        words: list[int] = []
        for passage in document.passages:
            terms, length, tells = read_words(passage)
            self._add(terms, first + len(words))
            words.append(length)
            tells_time = tells_time or tells
        terms, output = read_output(document.output)
        self._add(terms, first)
        self.documents.append(document)
        self.nbytes += sum(map(len, document.passages)) + len(document.output)
        self.places += len(words)
        return words, output, tells_time

    def _add(self, terms: list[int], place: int) -> None:
        self.nbytes += 100 * len(terms)
        for term, frequency in Counter(terms).items():
            places, frequencies = self._postings.setdefault(term, ([], []))
            places.append(place)
            frequencies.append(min(frequency, MAX_FREQUENCY))

    def postings(self, term: int) -> tuple[list[int], list[int]]:
        """Return the places of the passages with a term, rising, and its frequency in each."""
        return self._postings.get(term, ([], []))
