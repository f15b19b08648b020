"""Join duplicate keys of the public-names table."""
import re,ast
p='src/refold/__init__.py'
s=open(p).read()
lines=s.split('\n'); seen={}; out=[]
for l in lines:
    m=re.match(r'    "(refold\.[\w.]+)": "([^"]*)",$',l)
    if m and m[1] in seen:
        i=seen[m[1]]
        old=re.match(r'    "(refold\.[\w.]+)": "([^"]*)",$',out[i])
        out[i]=f'    "{m[1]}": "{" ".join(sorted(old[2].split()+m[2].split()))}",'
        continue
    if m: seen[m[1]]=len(out)
    out.append(l)
open(p,'w').write('\n'.join(out))
