"""The newest documents, too few for a segment, in plain lists: adding one makes no array, so it is found at once."""

from __future__ import annotations

from collections import Counter

from holdfast.search.segment import MAX_FREQUENCY, Document, read_words


class Tail:
    """Index documents one by one."""

    def __init__(self) -> None:
        self.documents: list[Document] = []
        self._postings: dict[int, tuple[list[int], list[int]]] = {}
        self.nbytes = 0  # about: of the texts and the lists

    def add(self, document: Document) -> tuple[int, bool]:
        """Add a document, and return the number of its words and whether they tell a time. Linear in its words."""
        terms, words, tells_time = read_words(document.text)
        self.documents.append(document)
        self.nbytes += len(document.text) + 100 * len(terms)
        for term, frequency in Counter(terms).items():
            docs, frequencies = self._postings.setdefault(term, ([], []))
            docs.append(document.number)
            frequencies.append(min(frequency, MAX_FREQUENCY))
        return words, tells_time

    def postings(self, term: int) -> tuple[list[int], list[int]]:
        """Give the document numbers with a term, rising, and how often it stands in each."""
        return self._postings.get(term, ([], []))
