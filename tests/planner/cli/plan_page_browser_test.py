"""The page of `kvasir plan --html` in a browser: what it shows, by keyboard, in both schemes, on small screens.

  plan_page_browser_test.py KVASIR     exit 77 where no Chromium is installed
"""

import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from headless import Headless, find_browser  # noqa: E402

KIMI = ['--target', 'kimi-k3', '--draft', 'kimi-k3-dspark', '--tp', '8', '--dcp', '8']
HOSTILE = 'a</script><b>"&\'<img src=x onerror=alert(1)>'
QUESTIONS = {
    'hybrid': KIMI + ['--kv-memory', '46.8GiB', '--context', '131072'],
    'window': ['--target', 'gemma-3-27b', '--tp', '2', '--kv-memory', '20GiB'],
    'one_rank': ['--target', 'demo-target', '--draft', 'demo-dspark', '--kv-memory', '4MiB', '--context', '2k'],
    'does_not_fit': KIMI + ['--kv-memory', '400MiB', '--context', '1m'],
    'refused': KIMI + ['--kv-memory', '40GiB', '--draft-backend', 'flashmla'],
}
ARROW_RIGHT, ARROW_LEFT, HOME, END, ENTER, ESCAPE = 39, 37, 36, 35, 13, 27

# Text whose contrast with what is behind it is below 4.5 (3 for large text), as "text: ratio".
PALE = '''(() => {
  const channels = (colour) => colour.match(/[0-9.]+/g).map(Number);
  const light = (c) => c.slice(0, 3).map((v) => v / 255)
      .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
      .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (; element; element = element.parentElement) {
      const c = channels(getComputedStyle(element).backgroundColor);
      if (c.length < 4 || c[3] > 0) return c;
    }
    return [255, 255, 255];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.checkVisibility() || element.closest('script,style')) continue;
    const style = getComputedStyle(element);
    const [a, b] = [light(channels(style.color)), light(behind(element))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const large = parseFloat(style.fontSize) >= 24;
    if (ratio < (large ? 3 : 4.5)) found.push(walker.currentNode.data.trim() + ': ' + ratio.toFixed(2));
  }
  return found;
})()'''


# What had to be made scrollable.
SCROLLED = '''[...document.querySelectorAll('.scroll')].filter((box) => box.scrollWidth > box.clientWidth)
    .map((box) => box.firstElementChild.className)'''


def thousands(value):
    return '-' if value is None else f'{value:,}'


def size(value):
    """As planner/cli/quantity.h writes it: rounded to hundredths of the largest unit."""
    if value < 1024:
        return f'{value} B'
    unit = next(u for u in (4, 3, 2, 1) if value >> (10 * u) or u == 1)
    hundredths = (value * 100 + (1 << (10 * unit)) // 2) >> (10 * unit)
    return f'{hundredths // 100:,}.{hundredths % 100:02} {("KiB", "MiB", "GiB", "TiB")[unit - 1]}'


class PlanPage(unittest.TestCase):
    kvasir = ''

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix='kvasir_page_')
        cls.root = pathlib.Path(cls.folder.name)
        cls.env = dict(os.environ, XDG_STATE_HOME=str(cls.root / 'state'))
        for name, words in QUESTIONS.items():
            cls.write(name, words)
        cls.browser = Headless(find_browser(), cls.root / 'profile')

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.folder.cleanup()

    @classmethod
    def write(cls, name, words):
        subprocess.run([cls.kvasir, 'plan', '--no-save', '--html', cls.root / f'{name}.html'] + words, env=cls.env,
                       stdout=subprocess.DEVNULL, check=False)

    def machine(self, name):
        run = subprocess.run([self.kvasir, 'plan', '--no-save', '--output', 'json'] + QUESTIONS[name], env=self.env,
                             capture_output=True, check=False)
        return json.loads(run.stdout)

    def open(self, name, fragment=''):
        self.browser.open((self.root / f'{name}.html').as_uri() + fragment)
        data = self.browser.value('({...document.documentElement.dataset})')
        self.assertEqual(data.get('ready'), 'yes', data)
        self.assertEqual(data.get('errors'), '0', data)
        troubles = [event for event in self.browser.events
                    if event.get('method') in ('Runtime.exceptionThrown', 'Log.entryAdded')]
        self.assertEqual(troubles, [])

    def text(self, selector):
        return self.browser.value(f'document.querySelector({json.dumps(selector)}).textContent')

    def page_data(self):
        return json.loads(self.text('#data'))

    def expect_stop(self, stop):
        self.assertEqual(self.text('[data-context]'), thousands(stop['context_tokens']))
        self.assertEqual(self.text('[data-count]'), thousands(stop['requests']))
        self.assertEqual(self.text('[data-guaranteed]'), thousands(stop['guaranteed_requests']))
        self.assertEqual(self.text('[data-bytes]'), size(stop['bytes_per_request']))
        for index, value in enumerate([stop['requests']] + stop['alternatives']):
            self.assertEqual(self.text(f'[data-requests="{index}"]'), thousands(value))
        for index, value in enumerate(stop['pool_bytes']):
            self.assertEqual(self.text(f'[data-pool="{index}"]'), size(value))
        self.assertEqual(self.browser.value('document.querySelectorAll("tr.now").length'), 1)
        self.assertEqual(self.text('tr.now th'), thousands(stop['context_tokens']))
        self.assertIn(thousands(stop['context_tokens']) + ' tokens',
                      self.browser.value('document.getElementById("stop").getAttribute("aria-valuetext")'))

    def test_every_verdict_shows_the_machine_form(self):
        for name in QUESTIONS:
            with self.subTest(name):
                self.open(name)
                data, machine = self.page_data(), self.machine(name)
                self.assertEqual(data['plan'], machine)
                shown = self.text('body')
                if machine['verdict'] == 'fits':
                    self.assertIn(machine['plan_id'], shown)
                    for owned in machine['attribution']:
                        self.assertIn(thousands(owned['bytes']), shown)
                elif machine['verdict'] == 'does_not_fit':
                    self.assertIn(thousands(machine['needed_bytes']), shown)
                    for remedy in machine['remedies']:
                        self.assertIn(f'{remedy["flag"]} {remedy["value"]}', shown)
                else:
                    for refusal in machine['refusals']:
                        self.assertIn(refusal['rule'], shown)

    def test_fragments_open_at_a_length(self):
        for name in ('hybrid', 'window', 'one_rank'):
            self.open(name)
            for stop in self.page_data()['stops'][::4]:
                with self.subTest(name, context=stop['context_tokens']):
                    self.open(name, f'#context={stop["context_tokens"]}')
                    self.expect_stop(stop)
        for fragment in ('#context=7', '#context=x', '#context=99999999999999999999', '#%3Cb%3E'):
            self.open('hybrid', fragment)
            self.assertEqual(self.text('[data-context]'), '131,072')

    def test_the_slider_by_keyboard(self):
        self.open('hybrid')
        stops = self.page_data()['stops']
        self.expect_stop(stops[-1])
        self.browser.value('document.getElementById("stop").focus()')
        for key, code, index in (('ArrowLeft', ARROW_LEFT, -2), ('ArrowLeft', ARROW_LEFT, -3), ('Home', HOME, 0),
                                 ('ArrowRight', ARROW_RIGHT, 1), ('End', END, -1)):
            self.browser.press(key, code)
            self.expect_stop(stops[index])
        self.assertEqual(self.browser.value('location.hash'), f'#context={stops[-1]["context_tokens"]}')

    def test_layers_by_keyboard(self):
        for name in ('hybrid', 'window'):
            self.open(name)
            layers = self.page_data()['load'][0]['layers']
            self.browser.value('document.querySelector("[data-block] li").focus()')
            for key, code, index in ((None, 0, 0), ('ArrowRight', ARROW_RIGHT, 1), ('ArrowRight', ARROW_RIGHT, 2),
                                     ('ArrowLeft', ARROW_LEFT, 1), ('Home', HOME, 0)):
                if key:
                    self.browser.press(key, code)
                layer = layers[index]
                for words in (layer['name'], f'offset {layer["offset_bytes"]:,}', f'{layer["page_bytes"]:,} bytes'):
                    self.assertIn(words, self.text('#tip'))
                self.assertFalse(self.browser.value('document.getElementById("tip").hidden'))
                self.assertEqual(self.browser.value('document.activeElement.getAttribute("aria-selected")'), 'true')
            self.browser.press('Escape', ESCAPE)
            self.assertTrue(self.browser.value('document.getElementById("tip").hidden'))
            # One stop of the Tab key a block.
            blocks = self.browser.value('document.querySelectorAll("[data-block]").length')
            self.assertEqual(self.browser.value('document.querySelectorAll("[data-block] [tabindex=\\"0\\"]").length'),
                             blocks)

    def test_parts_of_bytes_open_by_keyboard(self):
        self.open('hybrid')
        self.browser.value('document.querySelector("details.kind:not([open]) > summary").focus()')
        was = self.browser.value('document.querySelectorAll("details.kind[open]").length')
        self.browser.call('Input.dispatchKeyEvent', type='keyDown', key='Enter', code='Enter', text='\r',
                          windowsVirtualKeyCode=ENTER)
        self.assertEqual(self.browser.value('document.querySelectorAll("details.kind[open]").length'), was + 1)

    def test_readable_at_every_width_in_both_schemes(self):
        for name in QUESTIONS:
            for width in (1280, 768, 390, 320):
                for scheme in ('light', 'dark'):
                    with self.subTest(name, width=width, scheme=scheme):
                        self.browser.look(width, scheme=scheme)
                        self.open(name)
                        self.assertLessEqual(self.browser.value('document.documentElement.scrollWidth'), width)
                        self.assertEqual(self.browser.value(PALE), [])
                        if width == 1280:
                            self.assertEqual(self.browser.value(SCROLLED), [])
        self.browser.look(1280)

    def test_paper_is_wide_enough(self):
        for name in QUESTIONS:
            with self.subTest(name):
                self.browser.look(688)  # A4 without its margins
                self.browser.call('Emulation.setEmulatedMedia', media='print')
                self.open(name)
                self.assertLessEqual(self.browser.value('document.documentElement.scrollWidth'), 688)
                self.browser.call('Emulation.setEmulatedMedia', media='')
        self.browser.look(1280)

    def test_whatever_takes_the_focus_has_a_name(self):
        for name in QUESTIONS:
            self.open(name)
            nodes = self.browser.call('Accessibility.getFullAXTree')['nodes']
            for node in nodes:
                focusable = any(p['name'] == 'focusable' and p['value']['value'] for p in node.get('properties', []))
                if focusable and node['role']['value'] != 'RootWebArea':
                    self.assertTrue(node.get('name', {}).get('value'), node)

    def test_nothing_is_loaded(self):
        self.open('hybrid')
        asked = {event['params']['request']['url'] for event in self.browser.events
                 if event.get('method') == 'Network.requestWillBeSent'}
        self.assertEqual({url for url in asked if not url.startswith(('data:', 'about:'))},
                         {(self.root / 'hybrid.html').as_uri()})

    def test_without_script_the_tables_are_there(self):
        self.browser.call('Emulation.setScriptExecutionDisabled', value=True)
        try:
            self.browser.open((self.root / 'hybrid.html').as_uri())
            root = self.browser.call('DOM.getDocument', depth=-1)['root']['nodeId']
            count = len(self.browser.call('DOM.querySelectorAll', nodeId=root, selector='.stops tbody tr')['nodeIds'])
            html = self.browser.call('DOM.getOuterHTML', nodeId=root)['outerHTML']
        finally:
            self.browser.call('Emulation.setScriptExecutionDisabled', value=False)
        self.assertNotIn('data-ready', html.split('<head>')[0])
        self.open('hybrid')
        self.assertEqual(count, len(self.page_data()['stops']))

    def test_hostile_names_stay_text(self):
        folder = self.root / HOSTILE.replace('/', '_')
        folder.mkdir()
        text = subprocess.run([self.kvasir, 'models', 'inspect', 'demo-target', '--output', 'text'],
                              capture_output=True, check=True).stdout
        (folder / 'model.txt').write_bytes(text)
        self.write('hostile', ['--target', str(folder / 'model.txt'), '--kv-memory', '4MiB'])
        self.open('hostile')
        command = self.page_data()['command']
        self.assertEqual(shlex.split(command)[3], str(folder / 'model.txt'))
        self.assertIn(command, self.text('footer'))
        self.assertEqual(self.browser.value('document.querySelectorAll("img").length'), 0)


if __name__ == '__main__':
    if not find_browser():
        print('no Chromium: skipped')
        sys.exit(77)
    PlanPage.kvasir = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
