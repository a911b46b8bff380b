"""The memtable: the newest documents, too few for a segment, in lists that grow without copying."""

from __future__ import annotations

from collections import Counter

from holdfast.search.segment import MAX_FREQUENCY, DocumentTerms, IndexedDocument, read_document
from holdfast.search.vocabulary import Vocabulary


class Memtable:
    """The index of the newest documents, added one by one."""

    def __init__(self) -> None:
        self.documents: list[IndexedDocument] = []
        self._postings: dict[int, tuple[list[int], list[int]]] = {}
        # The passages of all documents.
        self.places = 0
        self._words: set[str] = set()
        # The approximate memory of the texts and the lists, in bytes.
        self.nbytes = 0

    def add(self, document: IndexedDocument) -> DocumentTerms:
        """Add a document, and return its terms; linear in its words."""
        content = read_document(document)
        for place, terms in [*enumerate(content.passages, self.places), (self.places, content.output)]:
            self._add(terms, place)
        self.documents.append(document)
        self._words |= content.vocabulary
        self.nbytes += sum(map(len, document.passages)) + len(document.output)
        self.places += len(content.passages)
        return content

    def _add(self, terms: list[int], place: int) -> None:
        self.nbytes += 100 * len(terms)
        for term, frequency in Counter(terms).items():
            places, frequencies = self._postings.setdefault(term, ([], []))
            places.append(place)
            frequencies.append(min(frequency, MAX_FREQUENCY))

    @property
    def vocabulary(self) -> Vocabulary:
        """The words that may be looked up by their letters; few."""
        return Vocabulary(sorted(self._words))

    def postings(self, term: int) -> tuple[list[int], list[int]]:
        """Return the places of the passages with a term, rising, and its frequency in each."""
        return self._postings.get(term, ([], []))
