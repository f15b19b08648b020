"""Move and merge modules by a plan, rewriting every import.

usage: move.py PLAN [--check]

PLAN lines:
  # comment
  target.py: source.py source.py ...      paths relative to root; order = order of bodies
      "docstring"                          optional, the new module docstring (next line, indented)
  rename source.py:old new                rename a top-level symbol
  order target.py                         keep the order of sources as given
Modules not named stay where they are.
"""
import ast, io, re, sys, tokenize, pathlib, collections, subprocess

ROOT = pathlib.Path('.').resolve()
ROOMS = {
 'domain/compaction': 'When and how a conversation is compacted: policy, budget, and the decisions of an attempt.',
 'application/ports': 'What the use cases need from the world: one port a file, each with what it may raise.',
 'application/api': 'What users hold: the memory, a conversation in it, both for asyncio as well, and their results.',
 'application/runtime': 'What all use cases share while they run: the core, observers, and code of the user.',
 'application/conversation': 'Messages come in, and a conversation is loaded and read back.',
 'application/frames': 'What a request carries besides the conversation, recorded when it changes.',
 'application/generations': 'Conversations by thread id, where an erased one keeps its stream.',
 'application/compaction': 'Making a request fit: compaction attempts, the ladder of smaller steps, pins.',
 'application/summaries': 'Making a summary: its source, its text, and what stands in where a model fails.',
 'application/notes': 'Durable notes: taken before messages leave the context, kept in files, searched.',
 'application/history': 'Looking back: explain, compare, fork, export and query a conversation.',
 'application/maintenance': 'Taking care of a log as a whole: verify, rebuild, and what that answers.',
 'application/agent_tools': 'The tools that models call: recall, read, query and expand.',
 'application/lab': 'Playing and simulating recorded conversations, and what they cost.',
 'infrastructure/files': 'Files, locks and processes of this machine.',
 'infrastructure/sqlite': 'What every SQLite file of refold shares: connections, failures, retries.',
 'infrastructure/event_store': 'The log on SQLite, by the recorders of the eventsourcing library.',
 'infrastructure/write_ahead': 'Reading a damaged write-ahead log without SQLite.',
 'infrastructure/maintenance': 'Checks, backup, salvage and repair of a log file.',
 'infrastructure/projection_store': 'Read models in files beside the log, rebuilt by replay when they are damaged.',
 'infrastructure/search_backends': 'Search programs of the user, asked in place of the built-in index.',
 'infrastructure/observability': 'Log lines, spans, metrics and callbacks.',
 'infrastructure/lab': 'What ships for the lab: prices and the conversation of the demo.',
}
LAYERS = ('domain', 'application', 'infrastructure')
def modname(path):
    parts = list(pathlib.PurePath(path).with_suffix('').parts)
    if parts[0] in LAYERS: parts = ['refold'] + parts
    elif parts[:2] == ['src', 'refold']: parts = parts[1:]
    if parts[-1] == '__init__': parts.pop()
    return '.'.join(parts)

def read(path): return (ROOT / path).read_text('utf-8')

def all_files():
    out = []
    for top in (*LAYERS, 'src/refold', 'tests', 'benchmarks', 'examples', '.ci'):
        for p in sorted((ROOT / top).rglob('*.py')):
            r = p.relative_to(ROOT)
            if 'src' == r.parts[0] and any(x in LAYERS for x in r.parts[2:3]): continue
            out.append(str(r))
    return out

class Mod:
    def __init__(self, path):
        self.path, self.text = path, read(path)
        self.name = modname(path)
        self.pkg = self.name if path.endswith('__init__.py') else self.name.rpartition('.')[0]
        self.tree = ast.parse(self.text)
        self.lines = self.text.splitlines(keepends=True)
        self.defs = {}
        self.imports = {}  # binding -> (module, name or None)
        self.tc = set()
        self._scan(self.tree.body, False)
    def _scan(self, body, tc):
        for n in body:
            if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)): self.defs[n.name] = n
            elif isinstance(n, (ast.Assign, ast.AnnAssign)):
                ts = n.targets if isinstance(n, ast.Assign) else [n.target]
                for t in ts:
                    for x in ast.walk(t):
                        if isinstance(x, ast.Name): self.defs[x.id] = n
            elif isinstance(n, ast.ImportFrom):
                for a in n.names: self.imports[a.asname or a.name] = (self.absmod(n), a.name); tc and self.tc.add(a.asname or a.name)
            elif isinstance(n, ast.Import):
                for a in n.names: self.imports[a.asname or a.name.split('.')[0]] = (a.name, None); tc and self.tc.add(a.asname or a.name)
            elif isinstance(n, ast.If): self._scan(n.body, tc or 'TYPE_CHECKING' in ast.dump(n.test)); self._scan(n.orelse, tc)
            elif isinstance(n, ast.Try):
                self._scan(n.body, tc)
                for h in n.handlers: self._scan(h.body, tc)
            elif isinstance(n, ast.With): self._scan(n.body, tc)
    def absmod(self, n):
        if not n.level: return n.module
        base = self.pkg.split('.')
        base = base[:len(base) - (n.level - 1)]
        return '.'.join(base + ([n.module] if n.module else []))

def parse_plan(path):
    targets, docs, renames, keep = collections.OrderedDict(), {}, {}, set()
    last = None
    for raw in open(path, encoding='utf-8'):
        line = raw.rstrip('\n')
        if not line.strip() or line.lstrip().startswith('#'): continue
        if line.startswith('rename '):
            _, src, new = line.split(); p, old = src.rsplit(':', 1); renames[(p, old)] = new; continue
        if line.startswith('order '): keep.add(line.split()[1]); continue
        if line.startswith(' ') and line.strip().startswith('"'): docs[last] = line.strip().strip('"'); continue
        if line.startswith(' '): targets[last] += line.split(); continue
        t, _, s = line.partition(':'); last = t.strip(); targets.setdefault(last, []); targets[last] += s.split()
    return targets, docs, renames, keep

def main():
    check = '--check' in sys.argv
    targets, docs, renames, keep = parse_plan(sys.argv[1])
    files = all_files()
    mods = {f: Mod(f) for f in files}
    byname = {m.name: m for m in mods.values()}
    errors = []
    newpath = {f: f for f in files}
    for t, ss in targets.items():
        for s in ss:
            if s not in mods: errors.append(f'no such source {s}'); continue
            if newpath[s] != s: errors.append(f'{s} twice')
            newpath[s] = t
    groups = collections.OrderedDict()
    for f in files: groups.setdefault(newpath[f], []).append(f)
    for t, ss in targets.items():
        if t in groups: groups[t] = [s for s in groups[t] if s not in ss] + [s for s in ss if s in mods]
    # resolve a binding to its definer
    def resolve(module, name, depth=0):
        """-> ('mod', modname) | ('sym', path, name) | None"""
        if f'{module}.{name}' in byname and (module not in byname or name not in byname[module].defs): return ('mod', f'{module}.{name}')
        m = byname.get(module)
        if m is None: return None
        if name in m.defs: return ('sym', m.path, name)
        if name in m.imports and depth < 9:
            mod, nm = m.imports[name]
            if mod.startswith(('refold', 'tests')) and nm: return resolve(mod, nm, depth + 1)
        return ('sym', m.path, name)
    def newname(path, name): return renames.get((path, name), name)
    # edits in a file: list of (start_line, end_line, replacement lines)
    def rewrite(m, target, merged):
        edits = []
        src_renames = {}
        for n in ast.walk(m.tree):
            if not isinstance(n, ast.ImportFrom): continue
            am = m.absmod(n)
            if am is None or not am.startswith(('refold', 'tests', 'benchmarks')): continue
            out = collections.OrderedDict()
            for a in n.names:
                r = resolve(am, a.name)
                if am == 'refold' and m.path.split('/')[0] not in LAYERS: r = None  # public names
                if r is None: out.setdefault(am, []).append((a.name, a.asname)); continue
                if r[0] == 'mod':
                    new = modname(newpath[byname[r[1]].path]); pk, _, nm = new.rpartition('.')
                    bound = a.asname or a.name
                    out.setdefault(pk, []).append((nm, bound if bound != nm else None)); continue
                _, p, nm = r
                npth = newpath[p]; final = newname(p, nm)
                # a package's own front door (imported name through __init__) is kept
                if npth == target:
                    bound = a.asname or a.name
                    if bound != final: src_renames[bound] = final
                    continue
                bound = a.asname
                if final != nm and a.asname is None:
                    src_renames[a.name] = final
                if a.asname == a.name: bound = None if final == nm else a.asname
                if a.asname == a.name and final == nm: bound = nm  # explicit re-export stays
                out.setdefault(modname(npth), []).append((final, bound))
            ind = ' ' * n.col_offset
            tp = modname(target) if target.endswith('__init__.py') else modname(target).rpartition('.')[0]
            text = ''
            for mo, names in out.items():
                names = list(dict.fromkeys(names))
                rel = mo
                if tp.startswith('refold') and mo.rpartition('.')[0] == tp and target.split('/')[0] in LAYERS: rel = '.' + mo.rpartition('.')[2]
                elif mo == tp and target.split('/')[0] in LAYERS: rel = '.'
                elif tp.startswith('tests') and n.level and mo.rpartition('.')[0] == tp: rel = '.' + mo.rpartition('.')[2]
                text += ind + f'from {rel} import ' + ', '.join(x if not y else f'{x} as {y}' for x, y in names) + '\n'
            if not out and n.col_offset: text = ind + 'pass\n'
            old = ''.join(m.lines[n.lineno - 1:n.end_lineno])
            if text != old: edits.append((n.lineno, n.end_lineno, text))
        for (p, old), new in renames.items():
            if p == m.path: src_renames[old] = new
        lines = list(m.lines)
        for s, e, t in sorted(edits, reverse=True): lines[s - 1:e] = [t]
        text = ''.join(lines)
        if src_renames: text = rename_tokens(text, src_renames, m.path, errors)
        return text
    results, removed = {}, set()
    for target, ss in groups.items():
        if len(ss) == 1 and target not in targets:
            m = mods[ss[0]]; new = rewrite(m, target, False)
            if new != m.text: results[target] = new
            continue
        if len(ss) == 1:
            m = mods[ss[0]]; new = rewrite(m, target, False)
            if target in docs: new = set_doc(new, docs[target])
            results[target] = new
        else:
            results[target] = merge(target, ss, mods, byname, rewrite, docs.get(target), errors, renames, newpath, target in keep)
        removed.update(s for s in ss if s != target)
    if errors:
        print('\n'.join(errors)); 
        if not check: sys.exit(f'{len(errors)} errors')
    print(len(results), 'files written', len(removed), 'removed', 'errors', len(errors))
    if check: return
    for s in removed: (ROOT / s).unlink()
    for t, text in results.items():
        p = ROOT / t; p.parent.mkdir(parents=True, exist_ok=True); p.write_text(text, 'utf-8')
    for l in LAYERS:
        for d in sorted((ROOT / l).rglob('*'), reverse=True):
            if d.is_dir() and d.name != '__pycache__':
                py = [x for x in d.rglob('*') if x.is_file() and '__pycache__' not in x.parts and x.name != '__init__.py']
                if not py:
                    import shutil; shutil.rmtree(d)
                elif not (d / '__init__.py').exists():
                    doc = ROOMS.get(str(d.relative_to(ROOT)), 'TODO')
                    (d / '__init__.py').write_text(f'"""{doc}"""\n')
    # residual strings
    moved = {s: newpath[s] for s in files if newpath[s] != s}
    names = {modname(a): modname(b) for a, b in moved.items()}
    paths = dict(moved)
    pat = re.compile(r'(?<![\w.])(' + '|'.join(map(re.escape, sorted(names, key=len, reverse=True))) + r')(?!\w|\.\w)')
    ppat = re.compile(r'(?<![\w/])(' + '|'.join(map(re.escape, sorted(paths, key=len, reverse=True))) + r')(?![\w/])')
    left = re.compile(r'(?<![\w.])(' + '|'.join(map(re.escape, sorted(names, key=len, reverse=True))) + r')\.(\w+)')
    allnames = set(names) | {modname(x) for x in newpath.values()}
    allnames |= {'.'.join(x.split('.')[:k]) for x in allnames for k in range(1, 9)}
    for p in subprocess.run(['git', 'ls-files', '-co', '--exclude-standard'], capture_output=True, text=True).stdout.split('\n'):
        if not p.endswith(('.py', '.md', '.toml', '.txt', 'check', '.ci/run')) or not (ROOT / p).is_file() or p == 'CHANGELOG.md': continue
        t = (ROOT / p).read_text('utf-8')
        n = ppat.sub(lambda m: paths[m[1]], t)
        def sub(x):
            x = pat.sub(lambda m: names[m[1]], x)
            def att(m):
                if f'{m[1]}.{m[2]}' in allnames: return m[0]
                old = byname[m[1]]
                r = resolve(m[1], m[2])
                new = renames.get((old.path, m[2]), m[2])
                return f'{names[m[1]]}.{new}'
            return left.sub(att, x)
        n = sub(n) if not p.endswith('.py') else pat_py(n, sub)
        if n != t: (ROOT / p).write_text(n, 'utf-8')

def pat_py(text, sub):
    """Only inside string tokens."""
    try: toks = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except Exception: return text
    lines = text.splitlines(keepends=True)
    starts = [0]
    for l in lines: starts.append(starts[-1] + len(l))
    out = text
    for t in reversed(toks):
        if t.type == tokenize.STRING:
            new = sub(t.string)
            if new != t.string:
                i, j = starts[t.start[0] - 1] + t.start[1], starts[t.end[0] - 1] + t.end[1]
                out = out[:i] + new + out[j:]
    return out

def rename_tokens(text, ren, path, errors):
    tree = ast.parse(text)
    # string annotations
    strs = set()
    for n in ast.walk(tree):
        for f in ('annotation', 'returns'):
            x = getattr(n, f, None)
            if x is not None:
                for y in ast.walk(x):
                    if isinstance(y, ast.Constant) and isinstance(y.value, str): strs.add((y.lineno, y.col_offset))
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in ('cast',):
            for y in ast.walk(n):
                if isinstance(y, ast.Constant) and isinstance(y.value, str): strs.add((y.lineno, y.col_offset))
    for n in ast.walk(tree):
        if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            args = [a.arg for a in n.args.args + n.args.kwonlyargs + n.args.posonlyargs]
            for a in args:
                if a in ren: errors.append(f'{path}:{n.lineno}: parameter {a} shadows a renamed symbol')
            for x in ast.walk(n):
                if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store) and x.id in ren:
                    errors.append(f'{path}:{x.lineno}: local {x.id} shadows a renamed symbol')
    toks = list(tokenize.generate_tokens(io.StringIO(text).readline))
    lines = text.splitlines(keepends=True)
    edits = []
    depth = 0
    for i, t in enumerate(toks):
        if t.type == tokenize.OP and t.string in '([{': depth += 1
        if t.type == tokenize.OP and t.string in ')]}': depth -= 1
        if t.type == tokenize.NAME and t.string in ren:
            prev = toks[i - 1].string if i else ''
            nxt = toks[i + 1].string
            if prev == '.': continue
            if nxt == '=' and depth and prev in '(,': continue  # keyword argument
            # class-level attribute or field: skip if line is indented and next is ':' or '=' and not at module level
            if nxt in (':', '=') and toks[i].start[1] > 0 and toks[i - 1].type in (tokenize.INDENT, tokenize.NEWLINE, tokenize.NL, tokenize.DEDENT): continue
            edits.append((t.start[0], t.start[1], t.end[1], ren[t.string]))
        elif t.type == tokenize.STRING:
            if t.start in {(l, len(lines[l-1].encode()[:c].decode())) for l, c in strs if l == t.start[0]}:
                new = re.sub(r'\b(' + '|'.join(map(re.escape, ren)) + r')\b', lambda mm: ren[mm.group(1)], t.string)
                if new != t.string and t.start[0] == t.end[0]: edits.append((t.start[0], t.start[1], t.end[1], new))
    for l, a, b, new in sorted(edits, reverse=True):
        lines[l - 1] = lines[l - 1][:a] + new + lines[l - 1][b:]
    text = ''.join(lines)
    return re.sub(r'``(' + '|'.join(map(re.escape, ren)) + r')(\(|``)', lambda mm: f'``{ren[mm.group(1)]}{mm.group(2)}', text)

def set_doc(text, doc):
    tree = ast.parse(text)
    if tree.body and isinstance(tree.body[0], ast.Expr) and isinstance(tree.body[0].value, ast.Constant):
        n = tree.body[0]; lines = text.splitlines(keepends=True)
        lines[n.lineno - 1:n.end_lineno] = [f'"""{doc}"""\n']
        return ''.join(lines)
    return f'"""{doc}"""\n' + text

def split(text):
    """-> doc node text, import statements [(text, tc)], body text"""
    tree = ast.parse(text); lines = text.splitlines(keepends=True)
    doc, imports, tcs, cut = '', [], [], set()
    body = tree.body
    i = 0
    if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and isinstance(body[0].value.value, str):
        doc = ''.join(lines[body[0].lineno - 1:body[0].end_lineno]); cut |= set(range(body[0].lineno, body[0].end_lineno + 1)); i = 1
    for n in body[i:]:
        if isinstance(n, (ast.Import, ast.ImportFrom)):
            imports.append(''.join(lines[n.lineno - 1:n.end_lineno])); cut |= set(range(n.lineno, n.end_lineno + 1))
        elif isinstance(n, ast.If) and isinstance(n.test, ast.Name) and n.test.id == 'TYPE_CHECKING' and not n.orelse and all(isinstance(x, (ast.Import, ast.ImportFrom, ast.Pass)) for x in n.body):
            for x in n.body:
                if not isinstance(x, ast.Pass): tcs.append(''.join(l[4:] if l.startswith('    ') else l for l in lines[x.lineno - 1:x.end_lineno]))
            cut |= set(range(n.lineno, n.end_lineno + 1))
    rest = ''.join(l for k, l in enumerate(lines, 1) if k not in cut)
    return doc, imports, tcs, rest.strip('\n') + '\n'

def bindings(stmt):
    n = ast.parse(stmt).body[0]
    if isinstance(n, ast.Import): return {(a.asname or a.name.split('.')[0]): (a.name, None) for a in n.names}
    return {(a.asname or a.name): ('.' * n.level + (n.module or ''), a.name) for a in n.names}

def merge(target, ss, mods, byname, rewrite, doc, errors, renames, newpath, keep):
    # definition-time order: a source that imports another at run time comes after it
    if not keep:
        names = {mods[s].name: s for s in ss}
        deps = {s: set() for s in ss}
        for s in ss:
            m = mods[s]
            for b, (mo, nm) in m.imports.items():
                if b in m.tc: continue
                d = names.get(mo) or names.get(f'{mo}.{nm}')
                if d and d != s: deps[s].add(d)
        out, left = [], list(ss)
        while left:
            ready = [s for s in left if not deps[s] & set(left)]
            if not ready: errors.append(f'{target}: circle among {left}'); ready = [left[0]]
            out.append(ready[0]); left.remove(ready[0])
        ss = out
    seen = {}
    runtime, tconly, bodies, head = {}, {}, [], None
    for s in ss:
        m = mods[s]
        for d in m.defs:
            fd = renames.get((s, d), d)
            if fd in seen and fd != '__all__' and not (fd == 'logger'): errors.append(f'{target}: {fd} is defined in {seen[fd]} and {s}')
            seen[fd] = s
        text = rewrite(m, target, True)
        dc, im, tc, body = split(text)
        head = head or dc
        if 'logger' in m.defs and any('\nlogger = ' in '\n' + b for b in bodies):
            body = re.sub(r'(?m)^logger = .*\n+', '', body)
        for st in im:
            for b, o in bindings(st).items():
                if b in runtime and runtime[b] != o: errors.append(f'{target}: import {b} means {runtime[b]} and {o} ({s})')
                runtime[b] = o
        for st in tc:
            for b, o in bindings(st).items():
                if b in tconly and tconly[b] != o: errors.append(f'{target}: import {b} means {tconly[b]} and {o} ({s})')
                tconly[b] = o
        bodies.append(body)
    for b in list(runtime) + list(tconly):
        o = runtime.get(b) or tconly.get(b)
        if b in seen: errors.append(f'{target}: {b} is imported from {o} and defined in {seen[b]}')
    for b in list(tconly):
        if b in runtime: del tconly[b]
    def fmt(table, ind=''):
        t = ''
        for b, (mo, nm) in table.items():
            if nm is None: t += ind + (f'import {mo}\n' if b == mo.split('.')[0] else f'import {mo} as {b}\n')
            else: t += ind + f'from {mo} import {nm}' + (f' as {b}\n' if b != nm else '\n')
        return t
    if tconly and 'TYPE_CHECKING' not in runtime: runtime['TYPE_CHECKING'] = ('typing', 'TYPE_CHECKING')
    text = (f'"""{doc}"""\n' if doc else head) + '\n' + fmt(runtime)
    if tconly: text += '\nif TYPE_CHECKING:\n' + fmt(tconly, '    ')
    return text + '\n\n' + '\n\n'.join(bodies)

main()
