"""The deployment files: they render, they validate, and they name what the programs here really offer.

  manifests_test.py BIN_DIR     exit 77 (skipped) where kubectl or the checkers of tools/setup are missing
"""

import copy
import os
import re
import shutil
import subprocess
import sys
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), '..', '..'))
BASE = os.path.join(ROOT, 'deploy', 'kustomize', 'base')
PROGRAMS = {'kvasir-planner': 'Containerfile.planner', 'kvasir-worker': 'Containerfile.worker'}
SLIM = {'libc6', 'libstdc++6', 'libgcc-s1'}  # in every Debian image

if shutil.which('kubectl') is None:
    print('skipped: kubectl is not installed')
    sys.exit(77)
try:
    import manifests
except ImportError as missing:
    print(f'skipped: {missing}; run: tools/setup')
    sys.exit(77)

bin_dir = ''


def flags_of(program):
    text = subprocess.run([os.path.join(bin_dir, program), '--help'], check=True, capture_output=True, text=True).stdout
    return set(re.findall(r'(?<![\w-])--[a-z][a-z-]*', text))


# What must be noticed: (how to break a render, a word of the fault).
def _container(docs, kind):
    return next(d for d in docs if d['kind'] == kind)['spec']['template']['spec']['containers'][0]


def _pod(docs, kind):
    return next(d for d in docs if d['kind'] == kind)['spec']['template']['spec']


BREAKS = (
    (lambda d: _container(d, 'Deployment').update(colour='red'), 'colour'),
    (lambda d: _container(d, 'Deployment').update(ports=[{'containerPort': 'x'}]), 'containerPort'),
    (lambda d: _pod(d, 'StatefulSet')['securityContext'].pop('runAsNonRoot'), 'not root'),
    (lambda d: _pod(d, 'StatefulSet')['securityContext'].pop('seccompProfile'), 'seccomp'),
    (lambda d: _pod(d, 'StatefulSet').pop('automountServiceAccountToken'), 'token'),
    (lambda d: _container(d, 'Deployment')['securityContext'].pop('capabilities'), 'capabilities'),
    (lambda d: _container(d, 'Deployment')['securityContext'].pop('readOnlyRootFilesystem'), 'root file system'),
    (lambda d: _container(d, 'Deployment')['securityContext'].pop('allowPrivilegeEscalation'), 'escalation'),
    (lambda d: _container(d, 'StatefulSet')['resources']['limits'].pop('memory'), 'limits.memory'),
    (lambda d: _container(d, 'StatefulSet').update(image='kvasir-worker:latest'), 'tag'),
    (lambda d: _container(d, 'StatefulSet').pop('readinessProbe'), 'readinessProbe'),
    (lambda d: _container(d, 'StatefulSet')['livenessProbe']['grpc'].update(service='x'), 'livenessProbe'),
    (lambda d: _pod(d, 'Deployment').update(terminationGracePeriodSeconds=35), 'draining'),
    (lambda d: _pod(d, 'Deployment').pop('terminationGracePeriodSeconds'), 'draining'),
    (lambda d: d.remove(next(x for x in d if x['kind'] == 'NetworkPolicy')), 'NetworkPolicy'),
    (lambda d: next(x for x in d if x['kind'] == 'PodDisruptionBudget')['spec']['selector'].update(
        matchLabels={'a': 'b'}), 'selects no pod'),
    (lambda d: next(x for x in d if x['kind'] == 'StatefulSet')['spec'].update(serviceName='kvasir-planner'),
     'headless'),
)


class ManifestsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.docs = manifests.render(BASE)

    def test_the_base_has_no_faults(self):
        self.assertEqual([], manifests.faults(self.docs))

    def test_each_fault_is_noticed(self):
        for number, (break_it, word) in enumerate(BREAKS):
            with self.subTest(number=number, word=word):
                docs = copy.deepcopy(self.docs)
                break_it(docs)
                self.assertIn(word, '\n'.join(manifests.faults(docs)))

    def test_the_programs_know_the_flags_they_are_given(self):
        known = {program: flags_of(program) for program in PROGRAMS}
        self.assertEqual([], list(manifests.check_flags(self.docs, known)))
        known['kvasir-worker'] = set()
        self.assertIn('does not list', '\n'.join(manifests.check_flags(self.docs, known)))

    def test_images_run_as_another_user_and_hold_the_libraries_that_are_needed(self):
        for program, file in PROGRAMS.items():
            with self.subTest(program=program):
                with open(os.path.join(ROOT, 'deploy', file), encoding='utf-8') as opened:
                    _, _, runtime = opened.read().split('\nFROM ')  # comment, build stage, runtime stage
                self.assertIn('debian:12-slim', runtime)
                self.assertRegex(runtime, r'(?m)^USER [1-9]\d*:[1-9]\d*$')
                self.assertRegex(runtime, rf'(?m)^ENTRYPOINT \["/usr/local/bin/{program}"\]$')
                installed = set(re.search(r'install -y --no-install-recommends (.*?) &&', runtime).group(1).split())
                self.assertEqual(set(), self.packages_needed(program) - installed - SLIM)

    def packages_needed(self, program):
        """Debian packages of the libraries that the program names itself."""
        path = os.path.join(bin_dir, program)
        direct = set(re.findall(r'\(NEEDED\).*\[(.+)\]', subprocess.run(
            ['readelf', '-d', path], check=True, capture_output=True, text=True).stdout))
        loaded = subprocess.run(['ldd', path], check=True, capture_output=True, text=True).stdout
        packages = set()
        for name, file in re.findall(r'(\S+) => (/\S+)', loaded):
            if name not in direct:
                continue
            real = os.path.realpath(file)
            for candidate in (file, real, file.removeprefix('/usr'), real.removeprefix('/usr')):
                owner = subprocess.run(['dpkg', '-S', candidate], capture_output=True, text=True, check=False)
                if owner.returncode == 0:
                    packages.add(owner.stdout.split(':')[0])
                    break
            else:
                self.fail(f'{file} belongs to no package')
        return packages


if __name__ == '__main__':
    bin_dir = sys.argv.pop(1)
    unittest.main()
