"""Count modules, equal base names and long files that a plan leaves: count.py PLAN."""
import collections,subprocess,pathlib,re,sys
exec(open('tools/rooms/move.py').read().rsplit('main()',1)[0])
files=[f for f in all_files() if f.split('/')[0] in LAYERS]
new={f:f for f in files}
lines=collections.Counter()
for p in sys.argv[1:]:
    t,_,_,_=parse_plan(p)
    for tt,ss in t.items():
        for s in ss: new[s]=tt
for f in files: lines[new[f]]+=len(read(f).splitlines())
mods=[f for f in lines if not f.endswith('__init__.py')]
print('modules',len(mods), {l:sum(f.startswith(l) for f in mods) for l in LAYERS})
for l in LAYERS:
    c=collections.Counter(pathlib.PurePath(f).stem for f in mods if f.startswith(l))
    print(l,'dups',{k:[f for f in mods if f.startswith(l) and pathlib.PurePath(f).stem==k] for k,v in c.items() if v>1})
print('long',sorted(((n,f) for f,n in lines.items() if n>350),reverse=True))
stem=[pathlib.PurePath(f).stem for f in mods]
print('ing',[f for f in mods if pathlib.PurePath(f).stem.endswith('ing')])
