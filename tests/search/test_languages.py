"""Questions in Chinese, in German, and in two languages at once."""

from __future__ import annotations

import pytest

from holdfast import Memory
from recall_corpora import Said, found, tell

pytest_plugins = ["recall_fixtures"]

CHINESE = [
    "我表妹叫李雨欣，我们从小一起长大。",
    "李雨欣的生日是9月12日，我得准备礼物。",
    "我表妹在星辰科技有限公司上班。",
    "我表妹的手机号是13812345678。",
    "跟你说一下，我同事名字是张伟。",
    "我同事身高182厘米，很显眼。",
    "我同事今年34岁了。",
    "张伟特别喜欢钓鱼，周末常常去。",
    "我舅舅王建国是退休教师。",
    "舅舅搬到了杭州，住在西湖旁边。",
    "舅舅对花生过敏，聚餐的时候要注意。",
    "产品发布会定在10月9日下午四点。",
    "产品发布会在上海国际会展中心举行。",
    "听说产品发布会大概有三百人参加。",
    "下周三我要去北京出差，住两天。",
    "马拉松比赛在厦门，11月20日早上七点开始。",
    "我刚买了一部新的iPhone手机，花了六千块钱。",
    "弟弟今年考上了武汉大学，学的是医学。",
    "弟弟的性格很内向，不爱说话。",
    "我最近总是睡不好，可能是压力太大。",
    "晚饭吃了火锅，味道很好。",
    "我的邻居养了两只小猫，特别可爱。",
    "上司下个月要去德国参加展览。",
    "上司的学历是博士，毕业于清华大学。",
    "我室友会弹吉他，还在学画画。",
    "妈妈让我周末回家吃饭。",
    "爸爸每天早上六点去公园跑步。",
]
ASKED = [
    ("我表妹的生日是什么时候？", 1),
    ("我表妹在哪家公司工作？", 2),
    ("你还记得我同事今年多大了吗？年龄是几岁？", 6),
    ("张伟有什么兴趣爱好？", 7),
    ("最近真的好忙，对了，我舅舅对什么过敏？", 10),
    ("产品发布会的地点在哪里？", 12),
    ("我什么时候去北京出差？", 14),
    ("弟弟是什么样的性格？", 18),
    ("邻居的宠物是什么？", 21),
    ("上司的学历是什么？", 23),
]


def test_questions_in_chinese_find_what_answers_them(space: Memory) -> None:
    tell(space, [Said("daily", text) for text in CHINESE])
    places = [found(space.recall(query, limit=5)) for query, _ in ASKED]
    assert [q for (q, gold), hits in zip(ASKED, places, strict=True) if CHINESE[gold] not in hits] == []
    first = sum(hits[0] == CHINESE[gold] for (_, gold), hits in zip(ASKED, places, strict=True))
    assert first >= len(ASKED) - 4


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Am Freitag hat meine Schwester einen Termin beim Zahnarzt.", "Wann ist der Termin der Schwester?"),
        ("Herr Müller wohnt jetzt in Köln.", "Wo wohnt Herr Mueller?"),
        ("Herr Mueller wohnt jetzt in Koeln.", "Wer wohnt in Köln?"),
        ("我的MacBook放在办公室了", "where is my MacBook"),
        ("I moved to 上海 last year", "我什么时候去了上海？"),
    ],
)
def test_other_languages_stand_beside_english(space: Memory, text: str, query: str) -> None:
    others = ["When did he die in the war?", "The was of die and der is odd.", "Was it where she was?"]
    tell(space, [*(Said("others", other) for other in others), Said("a", text)])
    assert found(space.recall(query))[0] == text


def test_a_character_of_a_name_names_nobody(space: Memory) -> None:
    tell(space, [Said("a", "行李放在门口", name="张伟"), Said("b", "行李放在车里", name="李丽")])
    assert found(space.recall("行李在门口吗"))[0] == "行李放在门口"
