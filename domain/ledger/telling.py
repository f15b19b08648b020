"""Words that rules, decisions and open requests hold: for a quick look at a very long history.

The cues judge what is read; these words only choose what is read, so that some promise too much.
"""

_RULE = (
    *("never", "always", "dont", "must", "mustnt", "shouldnt", "prefer", "prefers", "preferred"),
    *("remember", "ensure", "avoid", "forbid", "forbidden", "allowed", "favorite", "favourite"),
    *("allergic", "untouched", "unchanged", "important", "required", "rather"),
)
_MAYBE = (
    *("not", "only", "instead", "cannot", "cant", "require", "requires", "least", "most", "leave"),
    *("without", "stop", "should", "decided", "decision", "agreed", "chose", "chosen", "settled"),
    *("approved", "conclusion", "longer", "later", "afterwards", "forget", "eventually", "todo"),
    *("waiting", "finally", "switch", "name", "call", "plan", "keep", "drop"),
)
PROMISES = {**dict.fromkeys(_MAYBE, 1.0), **dict.fromkeys(_RULE, 2.0)}
"""How much each word of a message promises."""

OTHERS = (
    *(("不要", 2.0), ("不许", 2.0), ("禁止", 2.0), ("严禁", 2.0), ("不得", 2.0), ("千万", 2.0)),
    *(("必须", 2.0), ("务必", 2.0), ("一定要", 2.0), ("绝不", 2.0), ("勿", 2.0), ("记住", 2.0)),
    *(("喜欢", 2.0), ("讨厌", 2.0), ("过敏", 2.0), ("优先", 2.0), ("统一", 2.0), ("我叫", 2.0)),
    *(("别", 1.0), ("不能", 1.0), ("只能", 1.0), ("最好", 1.0), ("改用", 1.0), ("决定", 1.0)),
    *(("采用", 1.0), ("同意", 1.0), ("结论", 1.0), ("约定", 1.0), ("以后", 1.0), ("稍后", 1.0)),
    *(("回头", 1.0), ("别忘", 1.0), ("待办", 1.0), ("我的", 1.0), ("don’t", 2.0), ("mustn’t", 2.0)),
)
"""The same for words with characters that are not ASCII."""
