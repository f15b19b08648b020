"""Typed facts, as people and tools state them in English and Chinese, to be planted into real histories.

A phrasing marks with ⟦ ⟧ what must survive word for word. The phrasings were written before the code
that recognises such facts was tuned. Those with an odd number were looked at while it was; those with
an even number never were, so that the figures of both can be compared.
"""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from planted_questions import question_about

Type = Literal[
    "pin", "prohibition", "request", "preference", "decision", "path", "command", "number"
]
Language = Literal["en", "zh"]
Carrier = Literal["user", "assistant", "read", "edit", "run", "output", "pin"]
TYPES: tuple[Type, ...] = (
    "pin",
    "prohibition",
    "request",
    "preference",
    "decision",
    "path",
    "command",
    "number",
)

PHRASINGS: dict[tuple[Type, Language], tuple[str, ...]] = {
    ("prohibition", "en"): (
        "By the way, ⟦never run migrations against {db} without asking me first⟧.",
        "⟦Don't touch anything under {path}, legal has not signed off on it⟧.",
        "Please be careful: ⟦the {name} service must not be restarted during business hours⟧.",
        "⟦You are not allowed to add new dependencies to {name}⟧, we had trouble with that.",
        "⟦No force pushes to {branch}, ever⟧.",
        "I mentioned it before: ⟦do not log customer e-mail addresses in {name}⟧.",
        "⟦Keep your hands off {path}; another team owns it⟧.",
        "⟦Under no circumstances commit generated files to {branch}⟧, please.",
        "⟦It is forbidden to call the live {name} API from tests⟧.",
        "And ⟦stop editing {path} by hand, it is generated⟧.",
    ),
    ("prohibition", "zh"): (
        "另外，⟦没有我的同意不要在{db}上跑迁移⟧。",
        "⟦千万别动{path}，法务还没有签字⟧。",
        "注意：⟦工作时间禁止重启{name}服务⟧。",
        "⟦{name}里不允许再加新的依赖⟧，之前出过问题。",
        "⟦严禁对{branch}分支强制推送⟧。",
        "说过了，⟦不许在{name}的日志里打印客户邮箱⟧。",
        "⟦{path}归另一个团队管，你别去改⟧。",
        "⟦生成的文件绝不能提交到{branch}⟧，谢谢。",
        "⟦测试里不得调用{name}的线上接口⟧。",
        "还有，⟦请勿手工修改{path}，那是自动生成的⟧。",
    ),
    ("request", "en"): (
        "When you are done with this, ⟦please also write a short upgrade note for {name}⟧.",
        "One more thing for later: ⟦add a dark theme to the {name} page⟧.",
        "⟦Don't forget to rotate the keys of {name} before we ship⟧.",
        "⟦Could you also look into why {name} is slow on Mondays?⟧",
        "Still open from my side: ⟦rename the {name} column to something clearer⟧.",
        "⟦I'd also like a chart of {name} over time, whenever you get to it⟧.",
        "After that, ⟦clean up the leftovers of {name} in {path}⟧.",
        "⟦We still need somebody to document the {name} endpoint⟧, that's yours.",
        "⟦Please add a regression test for the {name} crash⟧.",
        "Put this on your list: ⟦remove the feature flag for {name}⟧.",
    ),
    ("request", "zh"): (
        "这个做完以后，⟦请再给{name}写一份简短的升级说明⟧。",
        "还有一件事不急：⟦给{name}页面加上深色主题⟧。",
        "⟦上线之前别忘了轮换{name}的密钥⟧。",
        "⟦你能不能顺便查一下{name}为什么每周一都很慢？⟧",
        "我这边还有个没完成的：⟦把{name}那一列改成更清楚的名字⟧。",
        "⟦有空的时候帮我画一张{name}随时间变化的图⟧。",
        "之后⟦把{path}里{name}的残留清理掉⟧。",
        "⟦{name}接口的文档还没人写⟧，交给你了。",
        "⟦请为{name}崩溃的问题补一个回归测试⟧。",
        "记到你的清单上：⟦去掉{name}的功能开关⟧。",
    ),
    ("preference", "en"): (
        "⟦I prefer small commits with the ticket {ticket} in the subject line⟧.",
        "From now on ⟦answer me in short bullet points when you report on {name}⟧.",
        "⟦Always use snake_case for the {name} fields⟧.",
        "For {name}, ⟦I'd rather have plain SQL than an ORM in {path}⟧.",
        "⟦My favourite layout for {name} dashboards is two columns⟧.",
        "⟦Make sure every {name} helper has a type annotation⟧.",
        "⟦I like the tests of {name} grouped by feature, not by class⟧.",
        "In general ⟦tabs over spaces in the {name} files⟧, that's how we do it here.",
        "⟦Whenever you touch {name}, show me the diff first⟧.",
        "⟦Please write {name} log messages in English only⟧.",
    ),
    ("preference", "zh"): (
        "⟦我喜欢小的提交，标题里带上{ticket}⟧。",
        "以后⟦汇报{name}的时候请用简短的要点⟧。",
        "⟦{name}的字段一律用下划线命名⟧。",
        "对{name}来说，⟦{path}里我宁愿用原生SQL也不用ORM⟧。",
        "⟦{name}的看板我最喜欢两栏的布局⟧。",
        "⟦务必给{name}的每个函数都加上类型注解⟧。",
        "⟦{name}的测试我希望按功能分组，不按类⟧。",
        "一般来说⟦{name}的文件用制表符缩进⟧，这是我们的习惯。",
        "⟦每次改{name}之前先把差异给我看⟧。",
        "⟦{name}的日志请只用英文写⟧。",
    ),
    ("decision", "en"): (
        "OK, decided: ⟦sessions of {name} go to Redis, not to Postgres⟧.",
        "⟦We agreed to keep {name} on version {version} until spring⟧.",
        "⟦Let's go with the queue-based design for {name}⟧.",
        "The root cause is clear now: ⟦{name} opened a second transaction inside the retry loop⟧.",
        "After comparing both, ⟦we will drop support for the old {name} format⟧.",
        "⟦The {name} team chose gRPC over REST for internal calls⟧.",
        "Final call: ⟦{name} is released on Thursdays only⟧.",
        "⟦I settled on a single writer for {name} to avoid the race⟧.",
        "⟦The plan is to migrate {name} in two steps, reads first⟧.",
        "So we're doing this: ⟦one table per tenant for {name}⟧.",
    ),
    ("decision", "zh"): (
        "好，决定了：⟦{name}的会话放到Redis，不放Postgres⟧。",
        "⟦我们约定{name}在春天之前都停留在{version}版本⟧。",
        "⟦{name}就用基于队列的方案⟧。",
        "根本原因找到了：⟦{name}在重试循环里又开了一个事务⟧。",
        "比较之后，⟦我们不再支持{name}的旧格式⟧。",
        "⟦{name}团队内部调用选了gRPC而不是REST⟧。",
        "最后定下来：⟦{name}只在周四发布⟧。",
        "⟦为了避免竞争，{name}采用单个写入者⟧。",
        "⟦方案是分两步迁移{name}，先迁读再迁写⟧。",
        "那就这么办：⟦{name}每个租户一张表⟧。",
    ),
    ("path", "en"): (
        "The handler lives in ⟦{path}⟧.",
        "I looked at ⟦{path}⟧ and it seems fine.",
        "See ⟦{path}⟧ for how the other team solved it.",
        "There is a second copy at ⟦{path}⟧ as well.",
    ),
    ("path", "zh"): (
        "处理逻辑在⟦{path}⟧里。",
        "我看了一下⟦{path}⟧，没有发现问题。",
        "别的团队的做法可以参考⟦{path}⟧。",
        "另外⟦{path}⟧里还有一份副本。",
    ),
    ("command", "en"): (
        "You can reproduce it with `⟦{command}⟧`.",
        "I ran `⟦{command}⟧` and it came back clean.",
        "To verify the result use: `⟦{command}⟧`",
        "On the build machine it is `⟦{command}⟧`.",
    ),
    ("command", "zh"): (
        "用 `⟦{command}⟧` 可以复现。",
        "我执行了 `⟦{command}⟧`，没有报错。",
        "验证结果的命令：`⟦{command}⟧`",
        "构建机上用的是 `⟦{command}⟧`。",
    ),
    ("number", "en"): (
        "We measured ⟦{number}⟧ for {name} on the staging box.",
        "{name} went down to ⟦{number}⟧ after the change.",
        "The budget for {name} is ⟦{number}⟧.",
        "With the cache on, {name} needs ⟦{number}⟧.",
    ),
    ("number", "zh"): (
        "{name}在预发环境上测得⟦{number}⟧。",
        "改完之后{name}降到了⟦{number}⟧。",
        "{name}的预算是⟦{number}⟧。",
        "打开缓存以后{name}需要⟦{number}⟧。",
    ),
    ("pin", "en"): (
        "⟦Contract {ticket}: {name} must answer within {number}, measured at the load balancer⟧",
        "⟦{name} is owned by Priya; she approves every change of {path}⟧",
    ),
    ("pin", "zh"): (
        "⟦合同{ticket}：{name}的响应时间不超过{number}，以负载均衡器的测量为准⟧",
        "⟦{name}由李雷负责，{path}的每次改动都要他批准⟧",
    ),
}
"""What is said. Tool traffic carries paths, commands and numbers in the forms below."""

OUTPUTS = {
    "path": ("{path}:118: found 1 match", "modified:   {path}"),
    "command": ("hint: run {command} to fix this", "$ {command}\nok"),
    "number": ("{name}: {number} (n=40)", "result {name} = {number}"),
}

_NAMES = (
    *("checkout", "ledger-sync", "geo-index", "billing-export", "thumbnailer", "rate-limiter"),
    *("invoice-mailer", "search-proxy", "audit-trail", "token-vault", "feed-ranker", "cron-runner"),
    *("image-cache", "sso-bridge", "price-engine", "webhook-relay", "session-store", "pdf-render"),
)
_FOLDERS = ("services", "internal", "lib", "apps/web", "packages/core", "deploy", "tools", "db")
_FILES = (
    "handler.go",
    "routes.ts",
    "schema.sql",
    "worker.py",
    "config.yaml",
    "index.tsx",
    "main.rs",
)
_COMMANDS = (
    "make bench-{name} JOBS={n}",
    "npm run verify:{name} -- --shard={n}",
    "python -m tools.{under} --rows {n}000",
    "go test ./internal/{under}/... -run TestReplay{n}",
    "docker compose run --rm {name} ./smoke.sh {n}",
    "cargo bench --bench {under} -- --sample-size {n}",
    "kubectl rollout undo deploy/{name} --to-revision={n}",
    "psql -d {under} -f reports/q{n}.sql",
)
_UNITS = ("ms", "MB", "%", "GB", "s", "KB", "rows", "req/s")
_CHINESE_UNITS = ("毫秒", "MB", "%", "秒", "万元", "GB", "天", "ms")
_MARK = re.compile("[⟦⟧]")


@dataclass(frozen=True)
class Statement:
    """One use of a fact: what is said or done, and by whom."""

    carrier: Carrier
    text: str


@dataclass(frozen=True)
class Fact:
    """A fact with all its uses, in order."""

    type: Type
    language: Language
    words: str
    """What must be found, character for character."""
    statements: tuple[Statement, ...]
    seen: bool
    """Whether its phrasing was looked at while the code was tuned."""
    question: str
    """What somebody asks who wants to know it."""

    @property
    def often(self) -> bool:
        return len(self.statements) > 1


def facts(rng: random.Random, each: int) -> list[Fact]:
    """``each`` facts of every type and language, half of them used more than once where that is usual."""
    made: list[Fact] = []
    for type_ in TYPES:
        for language in ("en", "zh"):
            made += [_fact(rng, type_, language, number) for number in range(each)]
    return made


def _fact(rng: random.Random, type_: Type, language: Language, number: int) -> Fact:
    phrasings = PHRASINGS[type_, language]
    # Over all phrasings in turn, whatever the number of facts; where it starts is drawn.
    index = (number + rng.randrange(len(phrasings))) % len(phrasings)
    values = _values(rng, language)
    said = phrasings[index].format(**values)
    words = said[said.index("⟦") + 1 : said.index("⟧")]
    spoken = _MARK.sub("", said)
    uses = tuple(_uses(rng, type_, spoken, values, often=number % 2 == 1))
    question = question_about(type_, language, phrasings[index], values)
    return Fact(type_, language, words, uses, seen=index % 2 == 0, question=question)


def _uses(
    rng: random.Random, type_: Type, said: str, values: dict[str, str], *, often: bool
) -> Iterator[Statement]:
    match type_:
        case "pin":
            yield Statement("pin", said)
        case "prohibition" | "preference" | "request":
            yield Statement("user", said)
            if often and type_ != "request":
                yield Statement("user", said)
        case "decision":
            yield Statement(rng.choice(("user", "assistant")), said)
            if often:
                yield Statement("assistant", said)
        case "path" | "command" | "number":
            yield from _tool_uses(rng, type_, said, values, often=often)


def _tool_uses(
    rng: random.Random, type_: str, said: str, values: dict[str, str], *, often: bool
) -> Iterator[Statement]:
    output = Statement("output", rng.choice(OUTPUTS[type_]).format(**values))
    spoken = Statement(rng.choice(("user", "assistant")), said)
    done = {
        "path": (Statement("read", values["path"]), Statement("edit", values["path"])),
        "command": (Statement("run", values["command"]),) * 2,
        "number": (output, spoken),
    }[type_]
    if often:
        yield from (*done, spoken)
    else:
        yield rng.choice((done[0], spoken, output))


def _values(rng: random.Random, language: Language) -> dict[str, str]:
    # A number of its own in each, so that no value is found by accident.
    name = f"{rng.choice(_NAMES)}-{rng.randrange(10, 99)}"
    under, n = name.replace("-", "_"), str(rng.randrange(2, 64))
    units: Sequence[str] = _UNITS if language == "en" else _CHINESE_UNITS
    return {
        "name": name,
        "db": f"{under}_prod",
        "branch": f"release/{rng.randrange(20, 40)}.{rng.randrange(10)}",
        "ticket": f"{rng.choice(('OPS', 'WEB', 'CORE'))}-{rng.randrange(1_000, 9_999)}",
        "version": f"{rng.randrange(2, 9)}.{rng.randrange(20)}.{rng.randrange(30)}",
        "path": f"{rng.choice(_FOLDERS)}/{under}/{rng.choice(_FILES)}",
        "command": rng.choice(_COMMANDS).format(name=name, under=under, n=n),
        "number": f"{rng.randrange(11, 990)}.{rng.randrange(1, 9)} {rng.choice(units)}",
    }
