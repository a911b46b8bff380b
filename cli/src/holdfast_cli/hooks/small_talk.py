"""Prompts that ask for nothing one could remember: commands, shell lines, thanks, and going on."""

import re
import unicodedata
from functools import cache

from holdfast.port.texts import headed_lists

# A command of the client, unlike a path; a line for the shell.
_COMMAND = re.compile(r"/[A-Za-z][\w:.-]*+(?=\s|$)|!")
_WORD = re.compile(r"[^\W_]++(?:['’][^\W_]++)*+")
# Scripts without spaces, and Hangul. As a regular expression it would take 5 ms to compile.
_UNSPACED = (("\u0e00", "\u0e7f"), ("\u3040", "\u30ff"), ("\u3400", "\u9fff"), ("\uac00", "\ud7af"))
# A longer prompt has something to say.
_WORDS, _CHARACTERS = 12, 400
# What is said to agree, to thank, to greet and to go on, beside the words without content of `text`.
_SAID = """
    thanks thank thx ty ok okay okey k kk yes yeah yep yup y n nope sure fine good great nice cool perfect
    awesome excellent brilliant lovely please pls continue proceed ahead next done right correct agreed lgtm
    hi hello hey morning evening bye goodbye sorry oops wow lol haha hmm um well again try retry wait do let's
    lets that's thats it's its looks look sounds works work worked got keep going option much very too so just
    this all i we me us can could would more alright make step phase stage part option schritt teil paso fase
    etape passo stap шаг
    danke dank bitte ja nee nein gut super toll prima genau weiter weitermachen mach mache machs mal hallo
    moin tschuss stimmt passt klar alles perfekt nochmal los doch schon sehr richtig einverstanden so schoen
    gracias vale si bueno bien perfecto claro hola adios sigue adelante listo acuerdo genial mucho muchas
    merci oui d'accord bonjour bonsoir salut parfait continuez vas-y allez vas y c'est bon top beaucoup
    obrigado obrigada sim certo ola valeu beleza otimo pode perfeito continua continuar
    grazie perfetto ciao avanti ottimo prego va bene mille
    bedankt goed ga door verder hoi oke graag
    dzieki tak nie dobrze dalej tack ja fortsatt kiitos jatka tesekkurler evet hayir tamam devam
    спасибо да нет хорошо ладно привет продолжай продолжайте дальше отлично понятно ок давай
    شكرا نعم لا تمام धन्यवाद हां हाँ नहीं ठीक है
    """
_SAID_UNSPACED = (
    "谢谢 多谢 好 好的 好吧 是 是的 对 不 不是 继续 可以 行 没问题 你好 嗯 ありがとう "
    "ありがとうございます はい いいえ 続けて お願いします 了解 了解です わかりました オーケー 감사합니다 "
    "고마워 고마워요 네 예 아니요 계속 계속해 좋아 좋아요 알겠습니다 ขอบคุณ ครับ ค่ะ"
)


def asks_for_nothing(prompt: str) -> bool:
    """Return whether nothing need be recalled for a prompt, by its form; any language, and fast.

    >>> asks_for_nothing("ok, go on"), asks_for_nothing("/clear"), asks_for_nothing("fix the login")
    (True, True, False)
    """
    text = prompt.strip()
    if _COMMAND.match(text):
        return True
    if len(text) > _CHARACTERS:
        return False
    words = [_fold(word) for word in _WORD.findall(text)]
    if len(words) > _WORDS:
        return False
    return all(
        word in _unspaced_words() if _is_unspaced(word) else _is_choice(word) or word in _small()
        for word in words
    )


def _is_choice(word: str) -> bool:
    """Return whether a word is a number or a letter, as of an option."""
    return word.isdecimal() or (len(word) == 1 and word.isascii())


def _is_unspaced(word: str) -> bool:
    return not word.isascii() and any(first <= char <= last for char in word for first, last in _UNSPACED)


def _fold(word: str) -> str:
    plain = unicodedata.normalize("NFKD", word.casefold().replace("’", "'"))
    return unicodedata.normalize("NFC", "".join(char for char in plain if not unicodedata.combining(char)))


@cache
def _unspaced_words() -> frozenset[str]:
    return frozenset(map(_fold, _SAID_UNSPACED.split()))


@cache
def _small() -> frozenset[str]:
    fillers = [
        word
        for name in ("fillers.txt", "function_words.txt")
        for (head, *_), lines in headed_lists("holdfast.text", name)
        if head in ("empty", "de", "es", "fr", "pt", "it", "nl", "not")
        for word in " ".join(lines).split()
    ]
    return frozenset(map(_fold, (*fillers, *_SAID.split())))
