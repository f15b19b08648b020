"""Tells which lines a program has printed: logs, errors, traces, diffs, transcripts of a terminal, advertisements."""

import re
from enum import IntEnum

_LEVEL = r"(?:INFO|WARN(?:ING)?|ERROR|DEBUG|TRACE|FATAL|CRITICAL|NOTICE|ERR|SEVERE)"
_TIME = r"(?:\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d|\d\d:\d\d:\d\d\b)"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"

_PRINTED = re.compile(
    rf"[\[(]?{_TIME}|{_MONTH} +\d{{1,2}} \d\d:\d\d:\d\d|\[\s?{_LEVEL}\s?\]|{_LEVEL}\s?[|\]]|level=\w+"
    r"|(?:\w+\.)*\w*(?:Error|Exception|Warning|Fault)(?:\[\w+\])?: |Error: |ERROR[: ]|FATAL[: ]|CRITICAL[: ]|E\d{3,5}: "
    r"|(?:error|warning)(?:\[\w+\])?: |fatal: |hint: |remote: |panic: |goroutine \d+ |thread '\w+' panicked"
    r"|npm (?:ERR!?|WARN|error|warn|notice)\b|yarn (?:error|warn)\b|\d+\.\d+ (?:npm|yarn|pip)\b"
    r"|Traceback \(most recent|File \"[^\"]+\", line \d+|at (?:async )?[\w.$<>/ ]+\(.*:\d+.*\)|at \S+:\d+:\d+"
    r"|\.\.\. \d+ (?:more|common frames)|Caused by: |Segmentation fault|Killed\b.{0,20}\Z"
    r"|[\w./@-]+\.\w{1,5}:\d+:\d+(?::|\s|\Z)|[\w./@-]+\.\w{1,5}\(\d+,\d+\)"
    r"|diff --git |index [0-9a-f]{6,}\.\.|@@ -\d|--- a/|\+\+\+ b/"
    r"|\[\+\] |=> |\[\d+/\d+\] |#\d+ (?:\d+\.\d|\[|DONE|CACHED|ERROR)|Step \d+/\d+ ?:"
    r"|-{3} (?:FAIL|PASS|SKIP)|={2,} (?:RUN|PAUSE|CONT)|(?:FAIL|ok|PASS)\t|(?:PASSED|FAILED|ERROR|XFAIL) \S+::|=={3,}"
    r"|(?:FAIL|PASS) \S+\.\w+|Tests?: +\d+ |Test Suites: |\d+ (?:passed|failed)\b"
    r"|(?:Process|Command|Script) (?:exited|completed|failed|finished) with|exit(?:ed with)? (?:code|status):? \d+"
    r"|Node\.js v\d|Compiling \S+ v\d|Downloading \S|Collecting \S+\Z|Requirement already satisfied"
    r"|⎿|⏺|✻|\{\"|\[\{|\w+=\S+(?: \w+=\S+){2,}|Running \[\S+|Ran [\w-]+ in \d"
    # What git says and advises.
    r"|\(use \"git |Your branch (?:is|and)|On branch |nothing to commit|Changes (?:not staged|to be committed)"
    r"|Untracked files:|Auto-merging |CONFLICT \(|Automatic merge failed|Already up to date"
    r"|(?:Please,? )?commit your changes (?:or|before)|You are in 'detached HEAD'|Aborting\Z|interactive rebase in"
    r"|Updates were rejected|To (?:push|see|undo|abort|continue)\b.{0,60}\buse\Z"
    r"|To address (?:all )?issues|Run [`'\"]?npm (?:fund|audit)|\d+ packages? (?:are )?looking for funding",
)
_MAYBE = re.compile(
    rf"{_LEVEL}: |note: |[\w./@-]+\.\w{{1,5}}:\d+: |(?:\w+, )*\w+ :?= \S|\*? ?\w+: \d+\Z|\d+ issues?:|\^+\Z|[~^]{{2,}}"
    r"|[}\])]+[;,]?\Z|\"[\w-]+\"\s*:|\w+: ['\"{\[]|\+(?:\s{2,}|[^\s+])|~?/[\w./~@-]+(?: \([\w/.-]+\))?\Z"
    r"|(?:return|if|for|while|func|def|class|const|let|var|import|export|public|private)\b.*[{(;:]\Z"
    r"|[\w.]+\(.*\)[;,]?\Z|.*[{;}]\Z|[✓✔✗✘●○]\s|Checked \d+|CACHED|DONE|Done in|Fetching|Building|Installing"
    r"|(?:错误|报错|异常|警告)[:：]",
)
_PROMPT = re.compile(
    r"(?:[$❯➜»]|[\w.-]+@[\w.-]+[: ]\S*\s?[$#%]|PS [A-Z]:\\\S*>|[A-Z]:\\[^>]{0,80}>|>>>|In \[\d+\]:|"
    r"\([\w.-]+\) [$%])\s+\S"
)
_ADVERTISEMENT = re.compile(
    r"(?:(?<=\A)|(?<=[.!?。！？] )|(?<=[│⎿>*•💡✨🎉] )|(?<=[💡✨🎉]))"
    r"(?:(?:pro[- ]?)?tips?(?: of the day)?\s?[:：]|did you know\b|sponsored\b|advertisement\b|"
    r"upgrade to \w+ (?:pro|plus|premium|max)\b|(?:小|温馨)?提示[:：]|小贴士|广告[:：]|赞助[:：])",
    re.IGNORECASE,
)


class Print(IntEnum):
    """How plainly a line was printed by a program."""

    NO = 0
    MAYBE = 1
    YES = 2
    PROMPT = 3
    """A command behind a shell's prompt: what follows is its output."""


def print_of(line: str) -> Print:
    """Tell how plainly a line, without blanks around it, was printed by a program."""
    if _PROMPT.match(line):
        return Print.PROMPT
    if _PRINTED.match(line):
        return Print.YES
    return Print.MAYBE if _MAYBE.match(line) else Print.NO


def advertisement_in(line: str) -> int | None:
    """Where an advertisement begins in a line, or None: what follows it on the line belongs to it."""
    found = _ADVERTISEMENT.search(line)
    return found.start() if found else None
