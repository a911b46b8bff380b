"""What makes two texts two, however alike: values as written, signs, symbols, case, and who does what."""

from __future__ import annotations

import pytest

from holdfast import Memory
from holdfast.dedup import relate
from tables import each

ANOTHER_VALUE = [
    ("Requires Python 3.10", "Requires Python 3.1"),
    ("Use release v1.20", "Use release v1.2"),
    ("The locker code is 0042", "The locker code is 42"),
    ("The rating is 4.50", "The rating is 4.5"),
    ("The temperature is -5 degrees", "The temperature is 5 degrees"),
    ("Blood type is O+", "Blood type is O-"),
    ("Grade is A", "Grade is A+"),
    ("Status is ✅", "Status is ❌"),
    ("Deployed to staging 👍", "Deployed to staging"),
    ("Threshold is >5", "Threshold is >=5"),
    ("The price is ~50 euros", "The price is 50 euros"),
    ("The operator is ==", "The operator is ==="),
    ("The flag is -v", "The flag is -V"),
    ("Pass --no-cache to the build", "Pass --cache to the build"),
    ("The env var is API_KEY", "The env var is api_key"),
    ("Path is /var/log/app", "Path is /var/log/App"),
    ("Ignore *.py", "Ignore *.pyc"),
    ("Read README.md first", "Read readme.md first"),
    ("The column is userId", "The column is userid"),
    ("Unit is mW", "Unit is MW"),
    ("The laser has 5 mW", "The laser has 5 MW"),
    ("Language is .NET", "Language is NET"),
    ("Send it to us", "Send it to US"),
    ("The aspect ratio is 16:9", "The aspect ratio is 9:16"),
    ("他住在3楼", "他住在5楼"),
]
EXCHANGED = [
    ("Alice reports to Bob", "Bob reports to Alice"),
    ("User manages Bob", "Bob manages the user"),
    ("Node A replicates to node B", "Node B replicates to node A"),
    ("A depends on B", "B depends on A"),
    ("Service orders depends on service billing", "Service billing depends on service orders"),
    ("Primary is db1, replica is db2", "Primary is db2, replica is db1"),
    ("The final score was 3-2", "The final score was 2-3"),
    ("Batch size 32 and 64 workers", "Batch size 64 and 32 workers"),
    ("Tom is taller than Jim", "Jim is taller than Tom"),
    ("Cache before database", "Database before cache"),
    ("Move the data from S3 to GCS", "Move the data from GCS to S3"),
    ("Lina teaches Omar French", "Omar teaches Lina French"),
    ("Prefer foo() over bar()", "Prefer bar() over foo()"),
    ("Der Hund beißt den Mann", "Der Mann beißt den Hund"),
    ("会议在3月5日", "会议在5月3日"),
    ("小明是小红的哥哥", "小红是小明的哥哥"),
]
THE_SAME = [
    ("User likes green tea", "The user likes GREEN TEA."),
    ("We use tabs", "we use tabs!"),
    ("Budget is 1,000 euros", "Budget is 1000 euros"),
    ("User likes tea and coffee", "User likes coffee and tea"),
    ("The owner of the API is Ana", "Ana is the owner of the API"),
    ("The flag `-v` is set", 'The flag "-v" is set'),
    ("The meeting is at 5 pm", "The meeting is at 17:00"),
    ("User lives in Berlin", "The user lives in Berlin."),
]
UNRELATED = [
    (
        "For the parser rewrite, let's start with a failing test.",
        "Let me check the logs and the failing job now.",
    ),
    ("Here's a summary of all changes:", "Let me do a final summary of what was changed."),
    ("Can you look at the test that fails?", "I'll look at why the build is slow."),
    ("I'm glad you had a good time with your family.", "It's great that you're supporting your family."),
]


@each(("old", "new"), [*ANOTHER_VALUE, *EXCHANGED, *UNRELATED])
def test_no_repetition_either_way(old: str, new: str) -> None:
    assert relate(new, [old]).kind != "duplicate"
    assert relate(old, [new]).kind != "duplicate"


@each(("old", "new"), THE_SAME)
def test_the_same_statement(old: str, new: str) -> None:
    assert relate(new, [old]).kind == "duplicate"


@pytest.mark.parametrize("pairs", [ANOTHER_VALUE, EXCHANGED], ids=["values", "roles"])
def test_what_was_said_last_is_current(pairs: list[tuple[str, str]]) -> None:
    for old, new in pairs:
        memory = Memory(":memory:", user="ada")
        memory.remember(old)
        memory.remember(new)
        assert new in [record.text for record in memory.records()]
