# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs a headless Chromium in the network of a booted machine, and controls it with the DevTools protocol over two pipes.

The browser runs outside of the machine, but in its network namespace. This has only loopback, so a page cannot reach other networks.
"""

import base64
import itertools
import json
import os
import select
import time

from tests.env.scratch import EnvError
from tests.env.service import Service

# Chromium reads descriptor 3 and writes descriptor 4. The sandbox is off, because it needs rights that root in a namespace does not have.
_SCRIPT = 'exec "${@:3}" 3<&"$1" 4>&"$2"'
_ARGUMENTS = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--hide-scrollbars', '--no-first-run',
              '--disable-background-networking', '--disable-component-update', '--remote-debugging-pipe']
_LOOK = '''new Promise(resolve => {
    const end = Date.now() + %d;
    const look = () => {
        let value;
        try { value = %s; } catch (error) { value = null; }
        if (value || Date.now() > end) resolve(value && typeof value === 'object' ? true : value);
        else setTimeout(look, 20);
    };
    look();
})'''
# The text of all frames, the newest first. In each frame the open dialogs come first.
_TEXT = '''[document, ...[...document.querySelectorAll("iframe")].map(one => one.contentDocument)].reverse().map(
    one => [...one.querySelectorAll("dialog[open]"), one.body].map(part => part.innerText.replace(/\\n+/g, "\\n")).join("\\n")).join("\\n\\n")'''


class Browser(Service):
    """A browser with one tab. evaluate() and wait() take expressions of JavaScript, in the page or in the frame with the page of a
    package."""

    name = 'browser'

    def __init__(self, machine, scratch=None):
        super().__init__(scratch)
        self.machine = machine
        self._ids = itertools.count(1)
        self._buffer = b''
        self._session = None
        self._ends = []
        self.problems = []  # errors in the console, including violations of the content security policy

    def _spawn(self):
        read_there, write_here = os.pipe()
        read_here, write_there = os.pipe()
        self._ends = [read_here, write_here]
        try:
            return self.scratch.spawn(
                ['bash', '-c', _SCRIPT, 'bash', read_there, write_there, 'nsenter', '-t', self.machine.leader, '-n', '--',
                 'chromium-headless-shell', *_ARGUMENTS, '--user-data-dir=%s' % (self.folder / 'profile'), 'about:blank'],
                'chromium', self.folder, pass_fds=(read_there, write_there))
        finally:
            os.close(read_there)
            os.close(write_there)

    def wait_ready(self):
        page = next(one for one in self._send('Target.getTargets')['targetInfos'] if one['type'] == 'page')
        self._session = self._send('Target.attachToTarget', targetId=page['targetId'], flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Log'):
            self._send(domain + '.enable')

    def kill(self):
        for end in self._ends:
            os.close(end)
        self._ends = []
        super().kill()

    def _read(self, until):
        # Messages end with a zero byte.
        while b'\0' not in self._buffer:
            ready, _, _ = select.select(self._ends[:1], [], [], max(0, until - time.monotonic()))
            more = os.read(self._ends[0], 1 << 20) if ready else b''
            if not more:
                raise EnvError('Chromium does not answer')
            self._buffer += more
        message, _, self._buffer = self._buffer.partition(b'\0')
        return json.loads(message)

    def _send(self, method, **params):
        # Events can arrive before the answer. _note() keeps those that report errors.
        message = {'id': next(self._ids), 'method': method, 'params': params}
        if self._session:
            message['sessionId'] = self._session
        os.write(self._ends[1], json.dumps(message).encode() + b'\0')
        until = time.monotonic() + 60
        while True:
            answer = self._read(until)
            self._note(answer)
            if answer.get('id') == message['id']:
                if 'error' in answer:
                    raise EnvError('%s: %s' % (method, answer['error']))
                return answer['result']

    def _note(self, event):
        if event.get('method') == 'Runtime.exceptionThrown':
            self.problems.append(json.dumps(event['params']['exceptionDetails'])[:1000])
        elif event.get('method') == 'Log.entryAdded' and event['params']['entry']['level'] == 'error':
            self.problems.append(json.dumps(event['params']['entry'])[:1000])

    def go(self, path):
        self._send('Page.navigate', url='http://127.0.0.1:9090' + path)

    def evaluate(self, expression):
        """Returns the value of an expression. Waits for it if it is a promise."""
        answer = self._send('Runtime.evaluate', expression=expression, returnByValue=True, awaitPromise=True)
        if 'exceptionDetails' in answer:
            raise EnvError('%s: %s' % (expression, json.dumps(answer['exceptionDetails'])[:1000]))
        return answer['result'].get('value')

    def wait(self, expression, seconds=30):
        """Returns the first true value of an expression, and regards an error as false. The browser itself repeats the expression, so there
        is no delay."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                found = self.evaluate(_LOOK % (1000 * (until - time.monotonic()), expression))
            except EnvError:
                time.sleep(0.1)  # the page was replaced during the call, for example by a login
                continue
            if found:
                return found
        raise EnvError('%s was not seen for %d s in:\n%s\n%s' % (
            expression, seconds, self.evaluate(_TEXT)[:3000], '\n'.join(self.problems)))

    def type(self, text):
        """Types the text into the focused element."""
        self._send('Input.insertText', text=text)

    def press(self, key, code):
        for kind in ('keyDown', 'keyUp'):
            self._send('Input.dispatchKeyEvent', type=kind, key=key, code=key, windowsVirtualKeyCode=code,
                       **({'text': '\r'} if key == 'Enter' and kind == 'keyDown' else {}))

    def look(self, width, height, dark):
        """Sets the size of the screen in pixels and its colour scheme."""
        self._send('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1, mobile=False)
        self._send('Emulation.setEmulatedMedia', features=[{'name': 'prefers-color-scheme', 'value': 'dark' if dark else 'light'}])

    def shoot(self, path):
        path.write_bytes(base64.b64decode(self._send('Page.captureScreenshot', format='png')['data']))
