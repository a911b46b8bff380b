"""Words for numbers, units, weekdays and months, in several languages, folded."""

from __future__ import annotations

_UNITS = """
ms: ms millisecond milliseconds msec = s 0.001
s: s sec secs second seconds sekunde sekunden segundo segundos seconde secondes secondi = s 1
min: min mins minute minutes minuten minuto minutos minuti minuut = s 60
h: h hr hrs hour hours stunde stunden hora horas heure heures ora ore uur = s 3600
day: day days tag tage tagen dia dias jour jours giorno giorni dag dagen = s 86400
week: week weeks woche wochen semana semanas semaine semaines settimana settimane weken = s 604800
month: month months monat monate mes meses mois mese mesi maand maanden = month 1
year: year years yr yrs jahr jahre jahren ano anos an ans anno anni jaar = month 12
kb: kb kib kilobyte kilobytes = byte 1024
mb: mb mib megabyte megabytes = byte 1048576
gb: gb gib gigabyte gigabytes gig gigs = byte 1073741824
tb: tb tib terabyte terabytes = byte 1099511627776
mm: mm millimeter millimeters millimetre millimetres = m 0.001
cm: cm centimeter centimeters centimetre centimetres = m 0.01
m: m meter meters metre metres = m 1
km: km kilometer kilometers kilometre kilometres kilometern kilometros = m 1000
mile: mile miles mi = mile 1
mg: mg milligram milligrams = g 0.001
g: g gram grams gramm = g 1
kg: kg kilo kilos kilogram kilograms kilogramm = g 1000
lb: lb lbs pound pounds = lb 1
ml: ml milliliter milliliters = l 0.001
l: l liter liters litre litres = l 1
usd: $ usd dollar dollars bucks = usd 1
eur: € eur euro euros = eur 1
gbp: £ gbp quid = gbp 1
pct: % percent pct prozent = pct 1
px: px pixel pixels = px 1
deg: ° °c celsius degree degrees = deg 1
"""
AMOUNTS = {
    "k": 1_000.0,
    "thousand": 1_000.0,
    "million": 1e6,
    "mio": 1e6,
    "bn": 1e9,
    "billion": 1e9,
    "tausend": 1_000.0,
    "hundred": 100.0,
}
NUMBER_WORDS = {
    word: number
    for number, words in enumerate(
        "zero null cero|one eins uno|two zwei dos deux twee dois|three drei tres trois tre drie|four vier cuatro quatre quattro quatro"
        "|five funf cinco cinq cinque vijf|six sechs seis sei zes|seven sieben siete sept sette zeven sete|eight acht ocho huit otto oito"
        "|nine neun nueve neuf nove negen|ten zehn diez dix dieci tien dez|eleven elf|twelve zwolf dozen|thirteen|fourteen|fifteen"
        "|sixteen|seventeen|eighteen|nineteen|twenty".split("|")
    )
    for word in words.split()
} | {"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90}
ORDINALS = {
    word: number
    for number, word in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth".split(), 1
    )
}
WEEKDAYS = {
    word: number
    for number, words in enumerate(
        "monday mon montag lunes lundi lunedi maandag segunda 月曜|tuesday tue tues dienstag martes mardi martedi dinsdag terca"
        "|wednesday wed mittwoch miercoles mercredi mercoledi woensdag quarta|thursday thu thur thurs donnerstag jueves jeudi giovedi donderdag quinta"
        "|friday fri freitag viernes vendredi venerdi vrijdag sexta|saturday sat samstag sabado samedi sabato zaterdag"
        "|sunday sun sonntag domingo dimanche domenica zondag".split("|")
    )
    for word in words.split()
}
MONTHS = {
    word: number
    for number, words in enumerate(
        "january stycznia января jan januar enero janvier gennaio januari janeiro|february lutego февраля feb februar febrero fevrier febbraio februari fevereiro"
        "|march marca марта mar marz marzo mars maart marco|april kwietnia апреля apr abril avril aprile|may maja мая mai mayo maggio mei maio|june czerwca июня jun juni junio juin giugno junho"
        "|july lipca июля jul juli julio juillet luglio julho|august sierpnia августа aug agosto aout augustus|september wrzesnia сентября sep sept septiembre septembre settembre setembro"
        "|october pazdziernika октября oct oktober octubre octobre ottobre outubro|november listopada ноября nov noviembre novembre novembro"
        "|december grudnia декабря dec dezember diciembre decembre dicembre dezembro".split("|"),
        1,
    )
    for word in words.split()
}


def _units() -> dict[str, tuple[str, float]]:
    table = {}
    for line in _UNITS.strip().splitlines():
        words, _, (dimension, factor) = line.split(":")[1].partition("=")[0], None, line.split("=")[1].split()
        table.update(dict.fromkeys(words.split(), (dimension, float(factor))))
    return table


UNITS = _units()
"""The words for units: dimension and factor."""
