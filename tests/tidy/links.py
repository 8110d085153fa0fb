"""A binary that must start without certain shared libraries does not load them, directly or through others.

  links.py NAME,NAME... BINARY...     exit 1 if a BINARY loads a library whose name contains one of the NAMEs
"""

import re
import subprocess
import sys


def loaded(binary):
    """Names that the dynamic linker would load: those that `readelf -d` shows, and theirs."""
    direct = subprocess.run(['readelf', '-d', binary], check=True, capture_output=True, text=True).stdout
    names = set(re.findall(r'\(NEEDED\).*\[(.+)\]', direct))
    if not names:
        raise ValueError(f'{binary} names no shared library: is it one of ours?')
    every = subprocess.run(['ldd', binary], check=True, capture_output=True, text=True).stdout
    return names | {line.split()[0] for line in every.splitlines() if line.strip()}


def main():
    banned = sys.argv[1].split(',')
    faults = 0
    for binary in sys.argv[2:]:
        for name in sorted(loaded(binary)):
            if any(b in name for b in banned):
                print(f'{binary} loads {name}')
                faults += 1
    print(f'links: {faults} faults in {len(sys.argv) - 2} binaries')
    return 1 if faults else 0


if __name__ == '__main__':
    sys.exit(main())
