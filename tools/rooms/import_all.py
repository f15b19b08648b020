"""Import every module by itself."""
import importlib,pathlib,subprocess,sys
mods=[]
for l in ('domain','application','infrastructure'):
    for p in sorted(pathlib.Path(l).rglob('*.py')):
        n='.'.join(('refold',*p.with_suffix('').parts)).removesuffix('.__init__')
        mods.append(n)
bad=0
for m in mods:
    r=subprocess.run([sys.executable,'-c',f'import {m}'],capture_output=True,text=True)
    if r.returncode: bad+=1; print(m, r.stderr.strip().splitlines()[-1][:200])
print(len(mods),'bad',bad)
