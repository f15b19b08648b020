"""Move and rename top-level symbols: symbols.py FILE; lines are ``from.py:Old to.py:New``, or ``from.py:Old New``."""
import sys
exec(open('tools/rooms/move.py').read().rsplit('main()',1)[0])
spec=[l.split() for l in open(sys.argv[1]) if l.strip() and not l.startswith('#')]
files=all_files(); mods={f:Mod(f) for f in files}; byname={m.name:m for m in mods.values()}
target={}
for a,b in spec:
    p,old=a.rsplit(':',1)
    if ':' in b: q,new=b.rsplit(':',1)
    else: q,new=p,b
    if p not in mods: sys.exit(f'no file {p}')
    if old not in mods[p].defs: sys.exit(f'{p} has no {old}')
    target[(p,old)]=(q,new)
def resolve(module,name,depth=0):
    m=byname.get(module)
    if m is None: return None
    if name in m.defs: return (m.path,name)
    if name in m.imports and depth<9:
        mod,nm=m.imports[name]
        if nm and mod.startswith(('refold','tests')): return resolve(mod,nm,depth+1)
    return None
errors=[]
bodies=collections.defaultdict(list)   # target file -> text of moved defs
out={}
for f,m in mods.items():
    edits=[]; ren={}
    for n in ast.walk(m.tree):
        if not isinstance(n,ast.ImportFrom): continue
        am=m.absmod(n)
        if not am or not am.startswith(('refold','tests','benchmarks')): continue
        if am=='refold' and f.split('/')[0] not in LAYERS:
            # public names that are renamed keep their alias by hand
            for a in n.names:
                pass
            continue
        groups=collections.OrderedDict(); changed=False
        for a in n.names:
            r=resolve(am,a.name)
            if r in target:
                q,new=target[r]; changed=True
                if q==f:
                    if (a.asname or a.name)!=new: ren[a.asname or a.name]=new
                    continue
                if a.asname is None and a.name!=new: ren[a.name]=new
                asn=a.asname if a.asname and a.asname!=a.name else (new if a.asname==a.name else None)
                groups.setdefault(modname(q),[]).append((new,asn))
            else: groups.setdefault(('.'*n.level+(n.module or '')),[]).append((a.name,a.asname))
        if changed:
            ind=' '*n.col_offset
            edits.append((n.lineno,n.end_lineno,''.join(ind+f'from {mo} import '+', '.join(x if not y else f'{x} as {y}' for x,y in ns)+'\n' for mo,ns in groups.items())))
    own=[(k,v) for k,v in target.items() if k[0]==f]
    moved=[k[1] for k,v in own if v[0]!=f]
    for (p,old),(q,new) in own:
        if old!=new: ren[old]=new
    lines=list(m.lines)
    cut=[]
    for name in moved:
        n=m.defs[name]; s=min([n.lineno]+[d.lineno for d in getattr(n,'decorator_list',[])]); e=n.end_lineno
        # docstring after an assignment
        i=m.tree.body.index(n)
        if isinstance(n,(ast.Assign,ast.AnnAssign)) and i+1<len(m.tree.body) and isinstance(m.tree.body[i+1],ast.Expr) and isinstance(getattr(m.tree.body[i+1],'value',None),ast.Constant): e=m.tree.body[i+1].end_lineno
        bodies[target[(f,name)][0]].append((f,''.join(m.lines[s-1:e]),dict(ren)))
        cut.append((s,e,''))
    # the old file still uses moved names?
    text_edits=sorted(edits+cut,reverse=True)
    for s,e,t in text_edits: lines[s-1:e]=[t]
    text=''.join(lines)
    if moved:
        left=ast.parse(text)
        used={n.id for n in ast.walk(left) if isinstance(n,ast.Name)}|{n.value for n in ast.walk(left) if isinstance(n,ast.Constant) and isinstance(n.value,str)}
        need=[(target[(f,x)]) for x in moved if x in used]
        if need:
            imp=''.join(f'from {modname(q)} import {nw}\n' for q,nw in need)
            k=next((i for i,n in enumerate(left.body) if isinstance(n,(ast.Import,ast.ImportFrom))),1)
            ls=text.splitlines(keepends=True); at=left.body[k].lineno-1 if k<len(left.body) else 1
            text=''.join(ls[:at])+imp+''.join(ls[at:])
    if ren: text=rename_tokens(text,ren,f,errors)
    if text!=m.text: out[f]=text
for q,parts in bodies.items():
    src=parts[0][0]
    imports=''.join(''.join(mods[src].lines[n.lineno-1:n.end_lineno]) for n in mods[src].tree.body if isinstance(n,(ast.Import,ast.ImportFrom))) if True else ''
    # relative imports of the source become absolute
    imps=''
    for n in mods[src].tree.body:
        if isinstance(n,ast.ImportFrom): imps+=f'from {mods[src].absmod(n)} import '+', '.join(a.name+(f' as {a.asname}' if a.asname else '') for a in n.names)+'\n'
        elif isinstance(n,ast.Import): imps+=''.join(mods[src].lines[n.lineno-1:n.end_lineno])
    # names of the source module that moved bodies use
    uses=set()
    for _,t,_r in parts:
        uses|={x.id for x in ast.walk(ast.parse(t)) if isinstance(x,ast.Name)}
    stay=[d for d in mods[src].defs if d in uses and (src,d) not in target]
    if stay: imps+=f'from {modname(src)} import '+', '.join(stay)+'\n'
    body='\n\n'.join(rename_tokens(t,r,q,errors) if r else t for _,t,r in parts)
    if q in out or q in mods:
        base=out.get(q,mods[q].text if q in mods else '')
        tree=ast.parse(base); k=tree.body[0].end_lineno if ast.get_docstring(tree) else 0
        ls=base.splitlines(keepends=True)
        out[q]=''.join(ls[:k])+'\n'+imps+''.join(ls[k:])+'\n\n'+body
    else:
        out[q]=f'"""TODO {q}."""\n\n'+imps+'\n\n'+body
for f,t in out.items():
    p=ROOT/f; p.parent.mkdir(parents=True,exist_ok=True); p.write_text(t,'utf-8')
print(len(out),'files',errors[:5])
