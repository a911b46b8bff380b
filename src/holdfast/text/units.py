"""Words for numbers, units, weekdays and months, in several languages, folded."""

from __future__ import annotations

_UNITS = """
ms millisecond milliseconds msec = s 0.001
s sec secs second seconds sekunde sekunden segundo segundos seconde secondes secondi = s 1
min mins minute minutes minuten minuto minutos minuti minuut = s 60
h hr hrs hour hours stunde stunden hora horas heure heures ora ore uur = s 3600
day days tag tage tagen dia dias jour jours giorno giorni dag dagen = s 86400
week weeks woche wochen semana semanas semaine semaines settimana settimane weken = s 604800
month months monat monate mes meses mois mese mesi maand maanden = month 1
year years yr yrs jahr jahre jahren ano anos an ans anno anni jaar = month 12
kb kib kilobyte kilobytes = byte 1024
mb mib megabyte megabytes = byte 1048576
gb gib gigabyte gigabytes gig gigs = byte 1073741824
tb tib terabyte terabytes = byte 1099511627776
mm millimeter millimeters millimetre millimetres = m 0.001
cm centimeter centimeters centimetre centimetres = m 0.01
m meter meters metre metres = m 1
km kilometer kilometers kilometre kilometres kilometern kilometros = m 1000
mile miles mi = mile 1
mg milligram milligrams = g 0.001
g gram grams gramm = g 1
kg kilo kilos kilogram kilograms kilogramm = g 1000
lb lbs pound pounds = lb 1
ml milliliter milliliters = l 0.001
l liter liters litre litres = l 1
$ usd dollar dollars bucks = usd 1
€ eur euro euros = eur 1
£ gbp quid = gbp 1
% percent pct prozent = pct 1
px pixel pixels = px 1
° °c celsius degree degrees = deg 1
"""
AMOUNTS = {"hundred": 100.0} | {
    word: 1000.0**power
    for power, words in enumerate(("k thousand tausend", "million mio", "bn billion"), 1)
    for word in words.split()
}


def _number_words(text: str, start: int = 0) -> dict[str, int]:
    """Return the number of each word; `|` separates the words of two numbers."""
    return {word: number for number, words in enumerate(text.split("|"), start) for word in words.split()}


NUMBER_WORDS = _number_words(
    "zero null cero|one eins uno|two zwei dos deux twee dois|three drei tres trois tre drie|four vier "
    "cuatro quatre quattro quatro|five funf cinco cinq cinque vijf|six sechs seis sei zes|seven sieben "
    "siete sept sette zeven sete|eight acht ocho huit otto oito|nine neun nueve neuf nove negen|ten zehn "
    "diez dix dieci tien dez|eleven elf|twelve zwolf "
    "dozen|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|twenty"
) | {"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90}
ORDINALS = _number_words("first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth", 1)
WEEKDAYS = _number_words(
    "monday mon montag lunes lundi lunedi maandag segunda 月曜|tuesday tue tues dienstag martes mardi "
    "martedi dinsdag terca|wednesday wed mittwoch miercoles mercredi mercoledi woensdag quarta|thursday "
    "thu thur thurs donnerstag jueves jeudi giovedi donderdag quinta|friday fri freitag viernes vendredi "
    "venerdi vrijdag sexta|saturday sat samstag sabado samedi sabato zaterdag|sunday sun sonntag domingo "
    "dimanche domenica zondag"
)
MONTHS = _number_words(
    "january stycznia января jan januar enero janvier gennaio januari janeiro|february lutego февраля "
    "feb februar febrero fevrier febbraio februari fevereiro|march marca марта mar marz marzo mars maart "
    "marco|april kwietnia апреля apr abril avril aprile|may maja мая mai mayo maggio mei maio|june "
    "czerwca июня jun juni junio juin giugno junho|july lipca июля jul juli julio juillet luglio "
    "julho|august sierpnia августа aug agosto aout augustus|september wrzesnia сентября sep sept "
    "septiembre septembre settembre setembro|october pazdziernika октября oct oktober octubre octobre "
    "ottobre outubro|november listopada ноября nov noviembre novembre novembro|december grudnia декабря "
    "dec dezember diciembre decembre dicembre dezembro",
    1,
)


# The dimension and the factor of a unit, by each word for it.
UNITS = {
    word: (dimension, float(factor))
    for *words, _, dimension, factor in map(str.split, _UNITS.strip().splitlines())
    for word in words
}
