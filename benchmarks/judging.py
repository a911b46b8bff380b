"""How well texts are judged: new texts beside stored ones by the merge, and what may do harm by the guard.

Both are held against files of labelled examples, one JSON object a line. What was tuned on a file says little
about the next; the files that nothing was tuned on are called `held_out`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

from benchmarks import CHECKOUT
from benchmarks.clock import Cost, cost_of, middle
from benchmarks.measurement import Bar, Measurement, at_least, at_most, measured
from benchmarks.report import Table
from holdfast.dedup import relate
from holdfast.errors import InvalidInput
from holdfast.safety import guard

RELATIONS = ("new", "duplicate", "update", "unsure")
LENGTH = 200  # characters of a message that the guard is timed on
_DATA = CHECKOUT / "tests" / "data"
_TYPOGRAPHIC = str.maketrans({"'": "’", "-": "–", "\n": " "})
_LANGUAGES = """\
Seit dem Umzug nach Zürich fährt Jörg täglich mit dem Fahrrad zur Arbeit; nur bei Schnee nimmt er die \
Straßenbahn, weil der Weg über die Brücke dann gefährlich glatt ist. Im März möchte er die Kette wechseln \
und neue Bremsbeläge kaufen.
Después de la reunión del miércoles, María pidió que el informe trimestral incluyera también las ventas de \
Perú y Panamá. El señor Muñoz enviará las cifras mañana por la mañana, así que la versión definitiva estará \
lista el próximo viernes.
L’équipe a décidé de repousser la mise en production au début de février : les tests de charge ont révélé un \
problème de mémoire dans le service de facturation, et Hélène préfère le corriger avant d’élargir l’accès à \
tous les clients français.
A reunião com o fornecedor foi adiada para quinta-feira, às três da tarde. João vai levar as amostras de \
azulejo e a Conceição trará o orçamento da cozinha; se tudo correr bem, as obras começam já em março e \
terminam antes do verão.
Ελένη μετακόμισε στη Θεσσαλονίκη τον Σεπτέμβριο και ψάχνει δάσκαλο για μαθήματα κιθάρας. Τα απογεύματα της \
Τρίτης είναι ελεύθερη μετά τις έξι, αλλά τα σαββατοκύριακα δουλεύει συνήθως στο βιβλιοπωλείο της θείας της \
κοντά στο λιμάνι.
В прошлый четверг Наташа перенесла сервер отчётов на новую машину, и с тех пор ночная выгрузка занимает \
сорок минут вместо двух часов. Осталось обновить сертификат, поправить права на каталог с архивами и \
предупредить бухгалтерию.
Pazartesi günü İzmir’e giden uçak üç saat gecikti, bu yüzden Gülşen toplantıya çevrim içi katıldı. Müşteri, \
yeni sürümde raporların Türkçe gösterilmesini ve tarihlerin gün, ay, yıl sırasıyla yazılmasını istiyor; \
Çağrı bununla ilgilenecek.
김민지 씨는 지난달에 부산에서 서울로 이사했고 지금은 회사에서 지하철로 이십 분 거리에 살고 있습니다. \
주말에는 친구들과 북한산에 오르거나 집 근처 도서관에서 책을 읽습니다. 커피보다는 녹차를 좋아하고, 매운 \
음식은 잘 먹지 못한다고 합니다. 다음 주 목요일에는 새로운 결제 시스템을 점검하기 위해 대전에 있는 데이터 \
센터로 출장을 갑니다. 숙소는 아직 예약하지 않았습니다.
山田さんは来月から大阪の支社に移ることになりました。引き継ぎの資料は共有フォルダーに置いてあり、毎週水曜日の午後に打ち合わせをします。請求書の締め切りは二十五日で、金額に誤りがあったときは経理の佐藤さんに連絡してください。新しい倉庫の鍵は受付で受け取れます。駐車場は建物の裏にあり、平日の朝は混みますので、電車で来るほうが便利です。昼食は近くの市場の食堂がおいしくて安いそうです。月末には部署の全員で送別会を開きます。
王老师每天早上七点坐地铁去学校，路上大约需要四十分钟。上个星期她把新的教学计划发给了校长，希望从九月开始增加两节科学实验课。学生们最喜欢的是观察植物的生长，所以她打算在窗台上放几盆西红柿和向日葵。星期五下午她要去图书馆借书，然后和同事一起准备下个月的家长会。家里的两只小猫最近不太爱吃东西，周末她想带它去看医生。如果天气好，她还会和儿子去公园放风筝，再买一些新鲜的水果回家做果酱，送给楼下的邻居们尝一尝。
انتقل أحمد إلى الإسكندرية في شهر نيسان ويعمل الآن مهندسًا في شركة للطاقة الشمسية. يفضّل الاجتماعات في الصباح \
الباكر لأن ابنته تعود من المدرسة عند الثانية ظهرًا، وفي عطلة نهاية الأسبوع يزور والديه في القاهرة ويلعب كرة \
القدم مع أصدقائه.
नेहा पिछले साल पुणे से बेंगलुरु आई और अब एक अस्पताल के लिए सॉफ़्टवेयर बनाती है। उसे सुबह की सैर पसंद है और \
शाम को वह बच्चों को गणित पढ़ाती है। अगले महीने उसकी टीम नया भुगतान पृष्ठ जारी करेगी, इसलिए मंगलवार को सबकी \
बैठक रखी गई है।
"""


def held_out(kind: str) -> list[Path]:
    """Return the file of labelled examples for "merge" or "guard" that a checkout has."""
    return [_DATA / kind / "held_out.jsonl"]


# The time of the guard --------------------------------------------------------------------------------------


def guard_costs(repeats: int) -> Iterator[Measurement]:
    """Scan messages of 200 characters that have nothing bad in them."""
    english, other = _english(), _other()
    typographic = [text.translate(_TYPOGRAPHIC) for text in english]
    for name, texts in (
        ("English, ASCII", english),
        ("English, with typographic marks", [text for text in typographic if not text.isascii()]),
        (f"{len(other)} other languages", other),
    ):
        cost = _cost_of_each(texts, repeats)
        bar = at_most(cost.cpu * 1e3, 30, "µs")
        yield measured(f"guard, message of {LENGTH} characters, {name}", cost, "µs", bar=bar)


def _english() -> list[str]:
    """Cut the messages of the demo; the guard finds nothing in any of them."""
    lines = (resources.files("holdfast_cli.demo") / "sessions.jsonl").read_text("utf-8").splitlines()
    said = "\n".join(message["content"] or "" for line in lines for message in json.loads(line)["messages"])
    said = said.encode("ascii", "ignore").decode()
    parts = [said[start : start + LENGTH] for start in range(0, len(said) - LENGTH, LENGTH)]
    return [part for part in parts if not guard.scan(part)]


def _other() -> list[str]:
    return [line[:LENGTH] for line in _LANGUAGES.splitlines()]


def _cost_of_each(texts: Sequence[str], repeats: int) -> Cost:
    """Return the median over the repeats of the mean over the texts: one text is too short for the clock."""

    def scan_all() -> None:
        for text in texts:
            guard.scan(text, closely=False)  # as an append does

    scan_all()
    return middle([cost_of(scan_all) / len(texts) for _ in range(repeats)])


# Files of examples ------------------------------------------------------------------------------------------

Example = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Judged:
    """Hold how a file was judged: all numbers, those that something was asked of, and a table."""

    numbers: dict[str, object]
    asked: tuple[Measurement, ...]
    table: Table


def examples(path: Path, fields: Mapping[str, type]) -> list[Example]:
    """Read labelled examples, which have at least these fields, each of its type.

    Raises:
        InvalidInput: a line is none, or there is none.

    """
    found = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if not line.strip():
            continue
        row = _parsed(line)
        if not all(isinstance(row.get(name), kind) for name, kind in fields.items()):
            raise InvalidInput(
                f"Line {number} of {path} is no labelled example.",
                f"Each line must be a JSON object with {', '.join(fields)}.",
            )
        found.append(row)
    if not found:
        raise InvalidInput(f"{path} has no labelled examples.", "Give a file with one JSON object a line.")
    return found


def _parsed(line: str) -> Example:
    try:
        row = json.loads(line)
    except ValueError:
        return {}
    return row if isinstance(row, dict) else {}


def pairs(path: Path) -> list[Example]:
    """Read pairs of texts, `old` and `new`, with the relation of the two as their `label`.

    Raises:
        InvalidInput: a line is no such pair, or there is none.

    """
    found = examples(path, {"old": str, "new": str, "label": str})
    for row in found:
        if row["label"] not in RELATIONS:
            raise InvalidInput(
                f"A pair in {path} is labelled {row['label']!r}.", f"Use one of {', '.join(RELATIONS)}."
            )
    return found


def texts(path: Path) -> list[Example]:
    """Read texts that are `harmful` or not, each with its `kind`.

    Raises:
        InvalidInput: a line is no such text, or there is none.

    """
    return examples(path, {"text": str, "harmful": bool, "kind": str})


def _percent(part: int, whole: int) -> float | None:
    return round(100 * part / whole, 2) if whole else None


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"


def _share(name: str, value: float | None, bar: Callable[[float], Bar]) -> Iterator[Measurement]:
    """Make a measurement of a share; of nothing there is none."""
    if value is not None:
        yield Measurement(name, value, "%", bar=bar(value))


# The merge --------------------------------------------------------------------------------------------------


class Confusion:
    """Count how pairs are labelled and what was said of them. What is wrong is a share of all pairs."""

    def __init__(self, rows: Sequence[Example], relation: Callable[[str, str], str]) -> None:
        self.counts = Counter((row["label"], relation(row["old"], row["new"])) for row in rows)

    def labelled(self, label: str) -> int:
        """Count the pairs with a label."""
        return sum(self.counts[label, said] for said in RELATIONS)

    def precision(self, relation: str) -> float | None:
        """Return the share of right ones among those of which a relation was said, in percent."""
        said = sum(self.counts[label, relation] for label in RELATIONS)
        return _percent(self.counts[relation, relation], said)

    def recall(self, relation: str) -> float | None:
        """Return the share of those with a label of which it was said, in percent."""
        return _percent(self.counts[relation, relation], self.labelled(relation))

    def wrong(self, relation: str) -> float | None:
        """Return the share of all pairs of which a relation was said that they do not have, in percent."""
        wrong = sum(self.counts[label, relation] for label in RELATIONS if label != relation)
        return _percent(wrong, self.counts.total())

    def to_json(self) -> dict[str, object]:
        """Return all numbers."""
        return {
            "confusion": {one: {said: self.counts[one, said] for said in RELATIONS} for one in RELATIONS},
            "precision": {one: self.precision(one) for one in RELATIONS},
            "recall": {one: self.recall(one) for one in RELATIONS},
            "wrong": {one: self.wrong(one) for one in RELATIONS},
        }

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Write it as rows of a table, one for each label."""
        for label in RELATIONS:
            said = (str(self.counts[label, one]) for one in RELATIONS)
            shares = map(_shown, (self.precision(label), self.recall(label), self.wrong(label)))
            yield (label, str(self.labelled(label)), *said, *shares)


def judge_pairs(path: Path) -> Judged:
    """Compare the pairs of a file as facts are compared."""
    rows = pairs(path)
    said = Confusion(rows, lambda old, new: relate(new, [old]).kind)
    table = Table(
        f"Merge: {len(rows)} pairs of {path.name}; what was said of the pairs with each label",
        ("label", "pairs", *RELATIONS, "precision %", "recall %", "wrong, % of all"),
        tuple(said.rows()),
    )
    asked = tuple(_merge_shares(f"merge, {path.stem}", said))
    return Judged({"file": str(path), "pairs": len(rows), "fitted": said.to_json()}, asked, table)


def _merge_shares(title: str, said: Confusion) -> Iterator[Measurement]:
    for name, relation in (("wrong supersede", "update"), ("wrong duplicate", "duplicate")):
        yield from _share(f"{title}: {name}", said.wrong(relation), partial(at_most, limit=1, unit="%"))
    for relation, least in (("duplicate", 80), ("update", 70)):
        name = f"{title}: {relation}s found"
        yield from _share(name, said.recall(relation), partial(at_least, limit=least, unit="%"))


# The guard --------------------------------------------------------------------------------------------------


def judge_texts(path: Path) -> Judged:
    """Scan the texts of a file. A text is stopped when the guard has a finding in it."""
    rows = texts(path)
    sides: dict[str, dict[str, list[bool]]] = {"harmful": {"all": []}, "harmless": {"all": []}}
    for row in sorted(rows, key=lambda row: str(row["kind"])):
        stopped = bool(guard.scan(row["text"]))
        for kind in ("all", row["kind"]):
            sides["harmful" if row["harmful"] else "harmless"].setdefault(kind, []).append(stopped)
    counts = {
        side: {kind: {"texts": len(found), "stopped": sum(found)} for kind, found in kinds.items()}
        for side, kinds in sides.items()
    }
    lines = [
        (side, kind, *map(str, count.values()), _shown(_percent(count["stopped"], count["texts"])))
        for side, kinds in counts.items()
        for kind, count in kinds.items()
    ]
    columns = ("texts", "kind", "number", "stopped", "%")
    table = Table(f"Guard: {len(rows)} texts of {path.name}", columns, tuple(lines))
    bars = {"harmful": partial(at_least, limit=95, unit="%"), "harmless": partial(at_most, limit=1, unit="%")}
    asked = [
        one
        for side, kinds in counts.items()
        for one in _share(
            f"guard, {path.stem}: {side} texts stopped",
            _percent(kinds["all"]["stopped"], kinds["all"]["texts"]),
            bars[side],
        )
    ]
    return Judged({"file": str(path), "texts": len(rows), **counts}, tuple(asked), table)


# All examples -----------------------------------------------------------------------------------------------


def judge_examples(name: str, files: Sequence[Path], progress: Callable[[str], None]) -> list[Judged]:
    """Judge labelled examples for "merge" or "guard": of the files, or else the held-out ones of a checkout.

    Raises:
        InvalidInput: a file has something else than labelled examples.

    """
    judged = []
    for file in files or held_out(name):
        progress(f"judging the examples of {file}")
        judged.append((judge_pairs if name == "merge" else judge_texts)(file))
    return judged
