"""What is found in which script, and however it is written."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from holdfast import Memory
from holdfast.text import analyze
from recall_corpora import Said, found, tell
from tables import each

pytest_plugins = ["recall_fixtures"]

OTHERS = [
    Said("other1", "The weather was mild and nothing happened."),
    Said("other2", "昨日は何もなかった。天气很好。"),
    Said("other3", "Вчера ничего не было. कल कुछ नहीं हुआ। لم يحدث شيء أمس."),
]
FOUND = [
    # case
    ("Training for the MARATHON", "marathon"),
    ("Die Straße ist lang", "STRASSE"),
    ("İstanbul is large", "istanbul"),
    ("Çay içtik, ılık", "ILIK"),
    ("ΟΔΥΣΣΕΥΣ", "οδυσσεύς"),
    ("the ﬁle", "file"),
    # accents
    ("a café in Paris", "cafe"),
    ("Müller kam", "muller"),
    ("Łódź leży w Polsce", "lodz"),
    ("Þingvellir", "thingvellir"),
    # width
    ("ＨＥＬＬＯ　ＷＯＲＬＤ", "hello"),
    ("ｶﾞﾗｽの靴", "ガラス"),
    # Chinese
    ("我的猫叫小白", "猫"),
    ("我住在上海市浦东新区", "浦东"),
    ("我住在上海市浦东新区", "你住在上海哪里？"),
    ("用Python写的HTTPServer程序", "python"),
    ("用Python写的HTTPServer程序", "程序"),
    ("𠮷野家で食べた", "𠮷野家"),
    # Japanese
    ("東京タワーに登りました", "東京"),
    ("東京タワーに登りました", "タワー"),
    ("東京タワーに登りました", "登る"),
    # Korean
    ("저는 서울에서 살아요", "서울"),
    ("저는 서울에서 살아요", "살"),
    # Thai, Lao, Khmer, Burmese
    ("ฉันไปกรุงเทพเมื่อวาน", "กรุงเทพ"),
    ("ខ្ញុំរស់នៅភ្នំពេញ", "ភ្នំពេញ"),
    # India
    ("मुझे बिल्ली पसंद है।", "बिल्ली"),
    ("मुझे बिल्ली पसंद है।", "पसंद है"),
    ("यह आखिरी शब्द किताब।", "किताब"),
    ("எனக்கு பூனை பிடிக்கும்", "பூனை"),
    # Arabic, Persian, Hebrew
    ("ذهبت إلى القاهرة", "القاهرة"),
    ("قال مُحَمَّد نعم", "محمد"),
    ("قال محمد نعم", "مُحَمَّد"),
    ("مـحـمـد", "محمد"),
    ("שָׁלוֹם לכולם", "שלום"),
    ("שלום לכולם", "שָׁלוֹם"),
    # Cyrillic, Greek, Georgian, Armenian, Tibetan
    ("Ёлка стоит дома", "елка"),
    ("МОСКВА большая", "москва"),
    ("Η Αθήνα είναι μεγάλη", "αθηνα"),
    ("თბილისი დიდია", "თბილისი"),
    ("བོད་ཡིག", "བོད"),
    # beside emoji and signs
    ("party 🎉 in Berlin🎉", "berlin"),
    ("“quoted” — dashed…", "quoted dashed"),
    ("don’t panic", "don't panic"),
    ("Anna's car", "Anna’s"),
]
COMPOSED = [
    "café",
    "Ångström",
    "Việt Nam",
    "ё й",
    "ガラス",
    "서울",
    "أحمد آمال رؤوف",
    "क़लम",
    "ড়",
    "שּׁ",
    "ཀྵ",
    "ΐ",
    "K Å",
    "ṩ",
    "ﬁ",
]


@each(("text", "query"), FOUND)
def test_a_message_is_found_however_it_is_written(spaces: Iterator[Memory], text: str, query: str) -> None:
    space = next(spaces)
    tell(space, [*OTHERS, Said("a", text)])
    assert found(space.recall(query))[0] == text


@each("text", COMPOSED)
@each("form", ["NFC", "NFD"])
@each("asked", ["NFC", "NFD"])
def test_composed_and_decomposed_characters_are_the_same(
    spaces: Iterator[Memory], text: str, form: str, asked: str
) -> None:
    space = next(spaces)
    message = unicodedata.normalize(form, text)  # type: ignore[arg-type]  # its type has the four forms only
    query = unicodedata.normalize(asked, text)  # type: ignore[arg-type]
    tell(space, [*OTHERS, Said("a", message)])
    hits = space.recall(query)
    assert hits[0].text == message


@each(
    ("text", "query"), [("東京タワー", "大阪"), ("서울에서", "부산"), ("marathon", "mara"), ("ไป", "กรุงเทพ")]
)
def test_other_words_are_not_found(spaces: Iterator[Memory], text: str, query: str) -> None:
    space = next(spaces)
    tell(space, [Said("a", text)])
    assert space.recall(query) == []


def test_all_scripts_together_are_told_apart(space: Memory) -> None:
    tell(space, [Said(f"chat{n}", text) for n, (text, _) in enumerate(FOUND)])
    for text, query in FOUND:
        same = analyze.hash_same(text)
        assert same in {analyze.hash_same(hit.text) for hit in space.recall(query)}
