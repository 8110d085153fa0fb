"""A headless Chromium that is told what to do through a pipe. Python's standard library is all it needs."""

import fcntl
import json
import os
import select
import shutil
import subprocess
import time

NAMES = ('chromium', 'chromium-browser', 'google-chrome', 'chrome')


def find_browser():
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Headless:
    """One tab. Commands and events are those of the DevTools protocol, messages end with a zero byte."""

    def __init__(self, browser, profile):
        read_here, write_there = os.pipe()
        read_there, write_here = os.pipe()
        # Away from 3 and 4, where the browser looks.
        ends = [fcntl.fcntl(fd, fcntl.F_DUPFD, 20) for fd in (read_there, write_there)]
        for fd in (read_there, write_there):
            os.close(fd)

        def place():
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        self.process = subprocess.Popen(
            [browser, '--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage',
             '--hide-scrollbars', f'--user-data-dir={profile}', '--remote-debugging-pipe', 'about:blank'],
            pass_fds=[3, 4] + ends, preexec_fn=place, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        for fd in ends:
            os.close(fd)
        self.read_from, self.write_to = read_here, write_here
        self.buffer, self.last, self.session, self.events = b'', 0, None, []
        target = self.call('Target.createTarget', url='about:blank')['targetId']
        self.session = self.call('Target.attachToTarget', targetId=target, flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Network', 'Log'):
            self.call(f'{domain}.enable')

    def _message(self, seconds):
        end = time.monotonic() + seconds
        while b'\0' not in self.buffer:
            ready, _, _ = select.select([self.read_from], [], [], max(0, end - time.monotonic()))
            chunk = os.read(self.read_from, 1 << 16) if ready else b''
            if not chunk:
                raise RuntimeError('the browser does not answer')
            self.buffer += chunk
        text, self.buffer = self.buffer.split(b'\0', 1)
        return json.loads(text)

    def call(self, method, **params):
        self.last += 1
        message = {'id': self.last, 'method': method, 'params': params}
        if self.session:
            message['sessionId'] = self.session
        os.write(self.write_to, json.dumps(message).encode() + b'\0')
        while True:
            answer = self._message(60)
            if answer.get('id') == self.last:
                if 'error' in answer:
                    raise RuntimeError(f'{method}: {answer["error"]}')
                return answer['result']
            self.events.append(answer)

    def open(self, url):
        """Goes there by way of an empty page, since another fragment alone loads nothing."""
        for address in ('about:blank', url):
            self.events = []
            self.call('Page.navigate', url=address)
            while not any(event.get('method') == 'Page.loadEventFired' for event in self.events):
                self.events.append(self._message(60))

    def value(self, script):
        result = self.call('Runtime.evaluate', expression=script, returnByValue=True)
        if 'exceptionDetails' in result:
            raise RuntimeError(f'{script}: {result["exceptionDetails"]}')
        return result['result'].get('value')

    def press(self, key, code):
        for kind in ('rawKeyDown', 'keyUp'):
            self.call('Input.dispatchKeyEvent', type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def look(self, width, height=900, scheme='light'):
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1,
                  mobile=False)
        self.call('Emulation.setEmulatedMedia', features=[{'name': 'prefers-color-scheme', 'value': scheme}])

    def close(self):
        self.session = None
        try:
            self.call('Browser.close')
        except (RuntimeError, OSError):
            self.process.terminate()
        self.process.wait(timeout=30)
        for fd in (self.read_from, self.write_to):
            os.close(fd)
