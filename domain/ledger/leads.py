"""Tells which words announce that somebody else's follow: a log, a review, a mail, a document."""

import re
from typing import Literal

Sort = Literal["output", "words", "document", "code"]
"""What a program printed; what another person or a model wrote; a plan or specification that was handed over;
a text between fences that nothing announces."""

LONGEST = 200
_OUTPUT = (
    r"(?:(?:error|ci|build|test|server|console|terminal|debug|crash|compiler|full)? ?logs?|(?:\w+ )?output|"
    r"stdout|stderr|"
    r"error messages?|"
    r"(?:stack ?)?traces?|traceback|stack ?trace|dump|diff|(?:test|lint|build) results?|CI|response)"
)
_WORDS = (
    r"(?:(?<!my )(?<!some )(?<!our )feedback|(?:code |pr )?reviews?|(?:review |pr |code )?comments?|remarks?|findings|"
    r"suggestions?|critique|e-?mails?|mails?|messages?|thread|conversation|transcript|chat|article|"
    r"(?:web ?)?page|(?:blog ?)?post|tweet|quotes?|docs?|documentation|readme|man ?page|paper|excerpt|passage|letter|"
    r"advice|notification|report)"
)
_DOCUMENT = (
    r"(?:plan|spec|specification|ticket|issue|(?:user )?story|prd|rfc|design(?: doc\w*)?|proposal|"
    r"document|brief)"
)
_BEFORE = (
    r"\b(?:here(?:['’]s|['’]re| is| are| comes?)|this is|these are|got|getting|received|receiving|saw|seeing|see|"
    r"from|below|following|pasted?|pasting|copied|quoting|eval|evaluate|address|review|read|analy[sz]e|summari[sz]e|"
    r"explain|debug|translate|investigate|per|according to)\b"
)
_MACHINE = (
    r"(?:CI|builds?|compiler|linter|lint|tests?|test suite|server|terminal|console|script|tool|bot|command|api|"
    r"pipeline|"
    r"job|action|workflow|logs?|git|npm|pip|cargo|go|pytest|docker|browser|dialog|output|hook|program|app|it)"
)
_PEOPLE = (
    r"(?:reviewers?|review|copilot|coderabbit\w*|greptile|bugbot|codex|chatgpt|gpt[\w.-]*|gemini|claude|cursor|"
    r"colleagues?|"
    r"co-?workers?|boss|manager|lead|customers?|clients?|users?|teammates?|maintainers?|author|support|vendor|docs?|"
    r"documentation|readme|manual|guide|article|page|ticket|issue|e-?mail|mail|he|she|they|someone|somebody|people|"
    r"(?:another|the other) (?:agent|model|ai|dev\w*))"
)
_SAYS = (
    r"(?:says?|said|wrote|writes|comments?|commented|repl(?:y|ies|ied)|answer(?:s|ed)|suggests?|suggested|recommends?|"
    r"recommended|told (?:me|us)|tells (?:me|us)|asks|asked(?: me| us)?|states?|stated|reads|noted?|mentioned|advises?|"
    r"advised|requests|requested|claims?|left)"
)
_PRINTS = (
    r"(?:prints?|printed|reports?|reported|shows?|showed|complains?|complained|outputs?|returned|logged|gives?|gave|"
    r"responded|responds|warns?|warned|fail(?:s|ed) with|throws?|threw|hints?)"
)
_LEADS: dict[Sort, re.Pattern[str]] = {
    "output": re.compile(
        rf".*\b(?:(?:the|my|our|this|that|a|an)\s)?{_MACHINE}(?: \S+){{0,3}}? (?:{_SAYS}|{_PRINTS})\b.{{0,40}}"
        rf"|.*(?:{_BEFORE}|\b(?:with|the|this|that|these|an?)\b)(?: \S+){{0,6}}? {_OUTPUT}\b(?![/.-]\w)[^,;]{{0,60}}"
        r"|.*\b(?:the|this|that|following|an?|with) (?:\w+[ -]){0,3}(?:error|exception|warning|failure)\b.{0,60}"
        r"|.*\b(?:get|got|getting|see|seeing|have) (?:\w+[ -]){0,4}(?:errors|exceptions|warnings|failures)\b.{0,60}"
        r"|(?:the |full |ci |build |error |test |command )*(?:logs?|output|stdout|stderr|traceback|stack ?trace)"
        r"|(?:.*[，。,])?(?:这是|以下是?|下面是?|收到|看到|得到|出现|附上|贴上?)?.{0,10}(?:日志|报错|错误信息|输出|堆栈|控制台|终端).{0,8}"
        r"|.{0,10}(?:CI|编译器|服务器|终端|程序|脚本|测试|控制台)[^，。]{0,6}(?:说|报|提示|显示|打印|输出).{0,6}",
        re.IGNORECASE,
    ),
    "words": re.compile(
        rf".*\b{_PEOPLE}(?: \S+){{0,3}}? {_SAYS}\b.{{0,60}}"
        rf"|.*{_BEFORE}(?: \S+){{0,6}}? {_WORDS}\b(?![/.-]\w)[^,;]{{0,120}}"
        r"|(?:.*[.!?,] )?(?-i:(?!We|You|They)[A-Z][a-z]+) (?:said|wrote|commented|replied|suggested|told (?:me|"
        r"us)|says|"
        r"writes|asked(?: me| us)?)\b.{0,40}"
        r"|on .{6,100} wrote"
        r"|(?:the |full |chat |meeting |call )*(?:transcript|chat(?: log)?|conversation|thread|e-?mail|minutes)"
        r"|(?:.*[，。,])?(?:这是|以下是?|下面是?|收到|看到|来自).{0,14}(?:反馈|评论|评审|意见|邮件|消息|原文|引用|留言).{0,8}"
        r"|.{0,10}(?:他|她|他们|同事|老板|经理|客户|用户|评审|审阅者|对方|产品|文档|邮件)[^，。我]{0,6}"
        r"(?:说|写道?|回复|评论|反馈|提到).{0,6}",
        re.IGNORECASE,
    ),
    "document": re.compile(
        rf"(?:.*{_BEFORE}|.*\b(?:implement|execute|follow|apply|do))(?: \S+){{0,6}}? {_DOCUMENT}\b.{{0,60}}",
        re.IGNORECASE,
    ),
}
# What is to be written or built, what the person thinks, and what that person said before.
_OWN = re.compile(
    r"\A(?:when(?:ever)?|if)\b|\b(?:should|must|shall|ought|want|need|write|draft|send|reply with|post|add|"
    r"create|produce|make sure|ensure|expected|"
    r"desired|i['’]d like|let['’]?s|modify|update|change|rewrite|improve|edit|extend|include|put|i think|(?:i|"
    r"we)(?:['’]ve)? (?:already |"
    r"just |have |also )*"
    r"(?:said|wrote|told|asked|mentioned|suggest\w*|reported?|noted)|my|mine)\b(?! (?:colleague|boss|manager|"
    r"co-?worker|"
    r"teammate|customer|client|lead|ci|build|reviewer|server|terminal|console|log|logs|output|error|traceback))"
    r"|应该|必须|需要|请写|写一|我(?:说|写|认为|觉得|的意见)",
    re.IGNORECASE,
)
_ORDERS = re.compile(
    r"\b(?:eval|evaluate|implement|execute|follow|apply|address|review|analy[sz]e|summari[sz]e|explain|debug|translate|"
    r"investigate|check|look|read|fix|handle|resolve|consider|please|can|could|would|why|what|how|"
    r"[a-z]+ me)\b|请|帮|看看",
    re.IGNORECASE,
)


def announces(lead: str) -> Sort | None:
    """Whose words follow these, or None: the person's own."""
    if len(lead) > LONGEST or _OWN.search(lead):
        return None
    return next((sort for sort, pattern in _LEADS.items() if pattern.fullmatch(lead)), None)


def orders(lead: str) -> bool:
    """Whether such words ask for something as well."""
    return _ORDERS.search(lead) is not None
