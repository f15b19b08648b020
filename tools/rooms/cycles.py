"""List the import circles that a plan leaves: cycles.py PLAN [--runtime]."""
import sys; plan=sys.argv[1]; tconly='--runtime' not in sys.argv
exec(open('tools/rooms/move.py').read().rsplit('main()',1)[0])
files=[f for f in all_files() if f.split('/')[0] in LAYERS]
mods={f:Mod(f) for f in files}; byname={m.name:m for m in mods.values()}
t,_,_,_=parse_plan(plan)
new={f:f for f in files}
for tt,ss in t.items():
    for s in ss: new[s]=tt
edges=collections.defaultdict(set)
for f,m in mods.items():
    for node in ast.walk(m.tree):
        if isinstance(node,ast.ImportFrom):
            am=m.absmod(node)
            for a in node.names:
                n=f'{am}.{a.name}' if f'{am}.{a.name}' in byname else am
                if n in byname:
                    g=byname[n].path
                    top = node in m.tree.body
                    if not tconly and not top: continue
                    if new[f]!=new[g] and not g.endswith('__init__.py'): edges[(new[f],new[g])].add((f,g,'' if top else 'lazy/tc'))
import itertools
adj=collections.defaultdict(set)
for a,b in edges: adj[a].add(b)
# tarjan
idx={};low={};st=[];on=set();out=[];c=itertools.count()
sys.setrecursionlimit(9999)
def sc(v):
    idx[v]=low[v]=next(c); st.append(v); on.add(v)
    for w in adj[v]:
        if w not in idx: sc(w); low[v]=min(low[v],low[w])
        elif w in on: low[v]=min(low[v],idx[w])
    if low[v]==idx[v]:
        comp=[]
        while True:
            w=st.pop(); on.discard(w); comp.append(w)
            if w==v: break
        if len(comp)>1: out.append(comp)
for v in list(adj):
    if v not in idx: sc(v)
for comp in out:
    print('CYCLE',len(comp))
    for (a,b),why in sorted(edges.items()):
        if a in comp and b in comp:
            print('  ',a,'->',b, '; '.join(f'{x[0].split("/",1)[1]}->{x[1].split("/",1)[1]}{" "+x[2] if x[2] else ""}' for x in sorted(why)))
