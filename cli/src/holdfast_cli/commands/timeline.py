"""The command for what was said and learned by day: timeline."""

from holdfast_cli.commands.chats import UNTITLED
from holdfast_cli.commands.ids import short_ids
from holdfast_cli.commands.options import Options
from holdfast_cli.commands.render.screen import count, plain, when


def timeline(
    options: Options, *, span: list[str] | None = None, limit: int = 50, cursor: str | None = None
) -> None:
    """Show what was said and learned across chats, by day: those of a day, a week, or the last seven days.

    For example: holdfast timeline yesterday, or holdfast timeline 2026-W11
    """
    name = " ".join(span or ())
    with options.open() as memory:
        days = memory.timeline(name or "last 7 days", name or None, limit=limit, cursor=cursor)
        short = short_ids(memory, [chat.chat for day in days for chat in day.chats])
    more = options.again(cursor=days.cursor) if days.cursor else None
    screen = options.answer({"days": plain(list(days)), "cursor": days.cursor, "more": more})
    for day in days:
        screen.say((f"{day.day:%A}, {day.day}", "bold"))
        for chat in day.chats:
            counts = (f"  {count(chat.messages, 'message')}  {short[chat.chat]}", "dim")
            time = (f"{when(chat.at)[11:]}  ", "dim")
            screen.say(time, chat.title or UNTITLED, counts, indent=2, hang=7)
            for words in chat.said:
                if words != chat.title:
                    screen.say((f"· {words}", "dim"), indent=9, hang=2)
        for change in day.learned:
            what = (f"{when(change.at)[11:]}  {change.action} {change.kind}: ", "dim")
            text = change.before if change.after is None else change.after
            screen.say(what, text or "", indent=2, hang=7)
        screen.say("")
    screen.say_more(more)
    if not days:
        todo = "Name another day, or a week: `holdfast timeline 2026-W11`. `holdfast chats` lists all chats."
        nothing = f"Nothing was said or learned{options.whose()} {name or 'in the last seven days'}."
        options.say_nothing(screen, nothing, todo)
