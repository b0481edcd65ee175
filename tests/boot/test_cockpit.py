# SPDX-License-Identifier: LGPL-2.1-or-later
"""The page for Cockpit, in a headless Chromium, from a real cockpit-ws.

Pictures of it are kept in the folder COMPUTE_AGENT_ARTEFACTS, if that is set. What of the page is pure (cockpit/model.js) is called in
the browser, too: there is no other JavaScript here.
"""

import json
import os
import time
import uuid
from pathlib import Path

from tests.boot.browser import Browser
from tests.boot.case import BootCase, package
from tests.boot.machine import UNIT
from tests.env.scratch import wait_until

DEVICE = '0000:41:00.0'
HOSTILE = '<img src=x onerror="document.title=1"><b>bold</b> \u202edrawkcab'
PASSWORD = 'none of yours'  # of users of the machine, which end with it
FRAME = 'document.querySelector("iframe[name=\\"cockpit1:localhost/compute-agent\\"]")'

# Texts of the page with less contrast to what is behind them than WCAG 2 wants (AA), as "text ratio".
CONTRAST = '''(() => {
    const view = %(frame)s.contentWindow, root = view.document.documentElement;
    const parts = colour => colour.match(/[0-9.]+/g).map(Number);
    const light = ([r, g, b]) => [r, g, b].map(c => c / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
        .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
    const behind = element => {
        for (; element; element = element.parentElement) {
            const colour = parts(view.getComputedStyle(element).backgroundColor);
            if (colour.length === 3 || colour[3] === 1) return colour;
        }
        return [255, 255, 255];
    };
    return [...root.querySelectorAll('main *')].filter(one => [...one.childNodes].some(node => node.nodeType === 3 && node.data.trim()))
        .map(one => {
            const [a, b] = [light(parts(view.getComputedStyle(one).color)), light(behind(one))].sort((x, y) => y - x);
            return [one.textContent.slice(0, 40), (a + 0.05) / (b + 0.05)];
        }).filter(([, ratio]) => ratio < 4.5).map(([text, ratio]) => text + ' ' + ratio.toFixed(2));
})()''' % {'frame': FRAME}

ROOT, GPU, CELL, GONE = ('%d0000000-0000-4000-8000-000000000000' % n for n in range(4))
TREE = {'root': ROOT, 'providers': [
    {'uuid': ROOT, 'name': 'h', 'inventories': {'MEMORY_MB': {'total': 4096, 'reserved': 512, 'capacity': 3584, 'used': 1024},
                                                'VCPU': {'total': 4, 'capacity': 4, 'used': 6}}},
    {'uuid': GPU, 'name': 'h_pci_0000_41_00_0', 'cordoned': True, 'withheld': '',
     'inventories': {'VGPU': {'total': 4, 'reserved': 4, 'capacity': 0, 'used': 1}}},
    {'uuid': CELL, 'name': 'h_NUMA1', 'inventories': {'PCPU': {'total': 2, 'capacity': 2, 'used': 1}}},
    {'uuid': GONE, 'name': 'h_pci_0000_81_00_0', 'withheld': 'missing', 'inventories': {}}]}
HOST = {'arch': 'x86_64', 'online_cpus': '0-2', 'memory_kib': 4194304,
        'cells': [{'id': 1, 'memory_kib': 4194304, 'cpus': [{'id': n, 'siblings': '0-1' if n < 2 else '2-3'} for n in range(4)]}],
        'devices': [{'name': 'pci_0000_41_00_0', 'address': '0000:41:00.0', 'numa_node': 1, 'class_code': 0x30200},
                    {'name': 'pci_0000_00_1f_0', 'address': '0000:00:1f.0', 'numa_node': -1, 'class_code': 0x60100}],
        'mdevs': [{'uuid': 'm1', 'parent': 'pci_0000_41_00_0'}, {'uuid': 'm2', 'parent': 'pci_0000_41_00_0'}],
        'domains': [{'uuid': 'g1', 'name': 'web', 'state': 'running', 'vcpus': 1, 'memory_kib': 1048576, 'mdevs': ['m1']},
                    {'uuid': 'g2', 'name': 'db', 'state': 'shutoff', 'vcpus': 2, 'memory_kib': 2048, 'mdevs': ['m2']}]}
CLAIMS = {'claims': [{'id': 7, 'consumer': 'g1', 'guest': 'web', 'state': 'confirmed', 'created_usec': 1, 'held': '1',
                      'cells': [{'host_cell': 1, 'memory_mb': 1024}], 'cpus': [{'vcpu': 0, 'dedicated': True, 'cpus': '1'}],
                      'allocations': [{'provider': ROOT, 'resources': {'MEMORY_MB': 1024}}, {'provider': GPU, 'resources': {'VGPU': 1}}],
                      'devices': [{'device': 'pci_0000_41_00_0', 'address': '0000:41:00.0', 'provider': GPU, 'mdev': 'm1'}]}]}
MOVED = {'before': {'providers': [{'uuid': 'a', 'name': 'old'}], 'consumers': {
             'c': {'allocations': {'a': {'resources': {'VCPU': 1, 'VGPU': 1}}}}}},
         'after': {'providers': [{'uuid': 'b', 'name': 'new'}], 'consumers': {
             'c': {'allocations': {'a': {'resources': {'VCPU': 1}}, 'b': {'resources': {'VGPU': 1}}}}}},
         'problems': [{'consumer': 'd', 'resource_class': 'VGPU', 'reason': 'no mdev'}]}
DOCUMENTS = {'tree': TREE, 'hostDocument': HOST, 'claimsDocument': CLAIMS, 'moved': MOVED}

MODEL = [
    ('plain("a\\u202eb\\u200b\\n<i>")', r'a\u202eb\u200b\u000a<i>'),
    ('plain(undefined) + plain("x".repeat(999)).length', '301'),
    ('[size(512), size(1024), size(1610612736)]', ['512 KiB', '1 MiB', '1.5 TiB']),
    ('amounts({VGPU: 1, MEMORY_MB: 2048})', '2 GiB memory, 1 VGPU'),
    ('[ago(0, 9e6), ago(9e6, 9e6), ago(1e6, 61e6), ago(7260e6, 60e6), ago(1, 864e9)]',
     ['never', 'just now', '60 s ago', '2 h left', '10 days ago']),
    ('[cpus("0-2,8"), cpus("8-,x,-1"), cpus(""), cpus("1-99999").length, cpuText([8, 1, 0, 2])]', [[0, 1, 2, 8], [], [], 8193, '0-2,8']),
    ('[verdict(null, 0).word, verdict({state: "ok"}, 0).word, verdict({state: "<x>"}, 0).state]', ['Unknown', 'OK', 'unknown']),
    ('verdict({state: "degraded", reasons: [{state: "warning", text: "t", command: "c"}]}, 0).reasons.map(one => [one.word, one.text, one.command])',
     [['Warning', 't', 'c']]),
    ('[operation("GetRetire"), operation("Sync"), operation("a\\u202e")]', ['Retire, dry run', 'Sync', r'a\u202e']),
    ('host(null, null, null)', {'facts': '', 'amounts': [], 'cells': [], 'devices': []}),
    ('host({cells: "x", devices: {}}, {providers: 3}, {claims: null}).cells', []),
    ('picture.amounts.map(one => [one.name, one.share, one.isOver, one.text, one.note])',
     [['MEMORY_MB', 1024 / 3584, False, '1 GiB of 3.5 GiB', '512 MiB of 4 GiB reserved'], ['VCPU', 1, True, '6 of 4', '']]),
    ('picture.cells.map(one => [one.id, one.text, one.amounts[0].text, one.holders])',
     [[1, '4 CPUs (0-3), 4 GiB memory', '1 of 2', [{'claim': 7, 'text': '#7 web', 'what': 'CPU 1, 1 GiB memory'}]]]),
    ('picture.cells[0].cores.map(core => core.map(cpu => [cpu.id, cpu.claim, cpu.state]))',
     [[[0, 0, 'free'], [1, 7, 'held']], [[2, 0, 'free'], [3, 0, 'off']]]),
    ('picture.cells[0].devices.map(one => [one.title, one.cordoned, one.tags[0].word, one.units[0].isOver, one.holders])',
     [[DEVICE, True, 'cordoned', False, [{'claim': 7, 'text': '#7 web', 'what': '1 VGPU, mdev m1'},
                                        {'claim': 0, 'text': 'db', 'what': 'a guest without a claim'}]]]),
    ('picture.cells[0].devices[0].units.map(one => [one.text, one.note])', [['1 in use', 'all 4 reserved']]),
    ('[null, {ActiveState: "failed", Result: "exit-code", StatusText: "failed: x.conf:3: <b>", ExecMainStatus: 78}, '
     '{ActiveState: "activating", Result: "exit-code", StatusText: "failed: no room"}, {ActiveState: "failed", Result: "watchdog"}, '
     '{ActiveState: "failed", Result: "exit-code", StatusText: "ready", ExecMainStatus: 1}, {ActiveState: "inactive", Result: "success"}]'
     '.map(one => Object.values(unit(one)))',
     [['Stopped', ''], ['Failed', 'failed: x.conf:3: <b>'], ['Starting', 'failed: no room'], ['Failed', 'failed (watchdog)'],
      ['Failed', 'failed with exit code 1'], ['Stopped', '']]),
    ('[count(0, "consumer"), count(1, "consumer"), count(2, "consumer")]', ['0 consumers', '1 consumer', '2 consumers']),
    ('[{state: "ok"}, {state: "warning"}, null].map(status => audit({taken_usec: 1e6, findings: []}, status, 61e6).words)',
     ['✓ Placement, claims and guests agree; compared 60 s ago.',
      *2 * ['No difference was found 60 s ago; the status of this host has a reason of its own above.']]),
    ('audit({taken_usec: 1e6, findings: [{remedy: "adopt", outcome: "found"}]}, {state: "ok"}, 61e6).words',
     '1 of 1 finding open; compared 60 s ago.'),
    ('picture.devices.map(one => [one.title, one.tags[0].word, one.cell])', [['0000:81:00.0', 'missing', None]]),
    ('claims(claimsDocument, {problems: [{claim: 7, text: "p"}]}, 5e6).rows.map(one => [one.holds, one.where, one.words, one.problems])',
     [['1 GiB memory, 1 VGPU', DEVICE + '; CPU 1; cell 1', 'in use', ['p']]]),
    ('[claims(claimsDocument, null, 0, "WEB").nFound, claims(claimsDocument, null, 0, "none").nFound, claims(claimsDocument, null, 0, "", 0).rows]',
     [1, 0, []]),
    ('events({events: [{id: 1, event: "released", claim: 7, consumer: "c", allocations: [{name: "h", class: "VCPU", amount: 2}], reason: "r"}]}, 0)[0]',
     {'id': 1, 'when': 'never', 'event': 'released', 'claim': '#7', 'name': 'c', 'what': '2 VCPU', 'author': 'the agent', 'reason': 'r'}),
    ('guests(hostDocument, claimsDocument).map(one => [one.name, one.has, one.devices, one.claim])',
     [['web', '1 vCPU, 1 GiB', 1, 7], ['db', '2 vCPU, 2 MiB', 1, 0]]),
    ('host({online_cpus: "3", memory_kib: 1024, cells: [{id: 0, cpus: [{id: 3}]}]}, null, null).cells[0].text', '1 CPU (3), 0 KiB memory'),
    ('[plan(null, null).steps, plan([{method: "PUT", path: "/traits/X", summary: "s"}], null)].map(one => one.words ?? one)',
     [[], '1 request to make Placement equal to this host']),
    ('plan([{method: "PUT", path: "/traits/X", summary: "s"}], {sync_state: "synced"}).steps[0].request', 'PUT /traits/X'),
    ('["synced", "left-to-nova", "offline", "pending", "retired"].map(state => plan([], {sync_state: state}).words)',
     [*2 * ['✓ Nothing is left to send: the tree in Placement is that of this host.'],
      *('Nothing to send now; the sync state is %s.' % state for state in ('offline', 'pending', 'retired'))]),
    ('plan(null, null).words', 'Nothing to send now; the sync state is unknown.'),
    ('[audit(null, null, 0), audit({findings: [{remedy: "adopt", outcome: "found"}, {remedy: "none", outcome: "failed", error: "e"}]}, null, 0).nHealable]',
     [None, 1]),
    ('reshape(moved)', {'moves': [{'consumer': 'c', 'from': ['1 VGPU of old'], 'to': ['1 VGPU of new']}],
                        'problems': [{'consumer': 'd', 'text': 'VGPU: no mdev'}]}),
    ('[drain(null), drain(claimsDocument)]', [{'n': 0, 'names': []}, {'n': 1, 'names': ['#7 web']}]),
    ('retire({holders: [{guest: "web", consumer: "c", claim: 7, placed: true}, {guest: "", consumer: "d", claim: 0, placed: false}], foreign: ["sw\\u202e"], providers: []})',
     {'isDone': False, 'isFree': False, 'holders': ['web, claim #7, has allocations in Placement', 'd, runs here'], 'foreign': [r'sw\u202e'],
      'providers': []}),
    ('[retire(null).isFree, retire({done: true, providers: ["h"]})]',
     [True, {'isDone': True, 'isFree': True, 'holders': [], 'foreign': [], 'providers': ['h']}]),
    ('[reshape(null), refusal({problem: "not-found"}), refusal({name: "a.Error.Busy", message: "later"})]', [None, 'not-found', 'later']),
    ('refusal({name: "org.freedesktop.DBus.Error.AccessDenied", message: "Access denied"}).startsWith("You may not do this: Access denied.")', True),
]


def setUpModule():
    BootCase.boot_and_serve()
    machine = BootCase.machine
    BootCase.install(next(package().parent.glob('cockpit-compute-agent_*.deb')))
    machine.write('/etc/cockpit/cockpit.conf', '[WebService]\nAllowUnencrypted = true\n')
    for user, groups in (('ops', 'sudo'), ('viewer', 'users')):
        machine.run('useradd', '--create-home', '--shell', '/bin/bash', '--groups', groups, user)
        machine.run('chpasswd', input='%s:%s\n' % (user, PASSWORD))
    machine.run('systemctl', 'start', 'cockpit.socket')


class Page(BootCase):
    @classmethod
    def log_in(cls, user):
        """A browser with the page of that user."""
        browser = Browser(cls.machine)
        cls.addClassCleanup(browser.close)
        browser.start()
        browser.look(1280, 900, dark=False)
        browser.go('/compute-agent')
        browser.wait('document.querySelector("#login-user-input").offsetParent', 60)
        # What "Turn on administrative access" leaves there.
        browser.evaluate('localStorage.setItem("superuser:ops", "any")')
        for name, text in (('user', user), ('password', PASSWORD)):
            browser.evaluate('document.querySelector("#login-%s-input").focus()' % name)
            browser.type(text)
        browser.press('Enter', 13)
        cls.browser = browser
        cls.see('#verdict', 60)
        return browser

    @classmethod
    def see(cls, selector, seconds=30, text=''):
        """An element of the page whose text has this one."""
        return cls.browser.wait('[...%s.contentDocument.querySelectorAll(%s)].some(one => one.textContent.includes(%s))' % (
            FRAME, json.dumps(selector), json.dumps(text)), seconds)

    def get(self, expression):
        return self.browser.evaluate('(page => %s)(%s.contentDocument)' % (expression, FRAME))

    def focus(self, selector):
        self.get('page.querySelector(%s).focus()' % json.dumps(selector))

    def push(self, selector):
        """With the keyboard."""
        self.focus(selector)
        self.browser.press('Enter', 13)

    def claim(self, resources='VCPU=1'):
        consumer = str(uuid.uuid4())
        number = self.machine.run('computectl', 'claim', '-q', '--consumer', consumer, '--resources', resources).stdout.strip()
        self.addCleanup(self.machine.run, 'computectl', 'release', number, check=False)
        return number, consumer

    def cordoned(self):
        return [one['name'] for one in self.machine.ctl_json('tree')['providers'] if one.get('cordoned')]


class Operator(Page):
    @classmethod
    def setUpClass(cls):
        cls.log_in('ops')

    def setUp(self):
        super().setUp()
        # What a test that failed left open would fail all others.
        self.get('page.querySelectorAll("dialog[open]").forEach(one => one.close())')

    def tearDown(self):
        # The shell misses a file or two of its own, and asks who is there before there is a password.
        own = [one for one in self.browser.problems if '"source": "network"' not in one or '/compute-agent/' in one]
        self.assertEqual(own, [])

    def test_what_of_the_page_is_pure(self):
        found = self.browser.evaluate('''import("/cockpit/@localhost/compute-agent/model.js").then(model => {
            const {%s} = model, {%s} = %s, picture = host(hostDocument, tree, claimsDocument);
            return [%s];
        })''' % ('plain, size, amounts, ago, cpus, cpuText, verdict, host, claims, events, guests, plan, audit, reshape, refusal, drain, retire, operation, count, unit',
                 ', '.join(DOCUMENTS), json.dumps(DOCUMENTS), ', '.join(expression for expression, _ in MODEL)))
        for (expression, wanted), value in zip(MODEL, found, strict=True):
            with self.subTest(expression):
                self.assertEqual(value, wanted)

    def test_a_dialog_that_follows_at_once(self):
        """The browser tells with its next frame that the one before was closed."""
        text = self.browser.evaluate('''import("/cockpit/@localhost/compute-agent/dialog.js").then(async ({ask}) => {
            const dialog = document.createElement("dialog");
            document.body.append(dialog);
            ask(dialog, {title: "one", body: []}, () => {});
            dialog.close();
            ask(dialog, {title: "two", body: []}, () => {});
            for (let i = 0; i < 3; i++)
                await new Promise(requestAnimationFrame);
            const text = dialog.textContent;
            dialog.close();
            for (let i = 0; i < 3; i++)
                await new Promise(requestAnimationFrame);
            const after = dialog.textContent;
            dialog.remove();
            return [text, after];
        })''')
        self.assertEqual(text, ['twoClose', ''])

    def test_a_claim_comes_and_is_released(self):
        number, consumer = self.claim('VCPU=2,VGPU=1')
        self.see('#claims tbody tr', 10, consumer)
        self.see('.device .holders', 10, '#%s %s' % (number, consumer))
        self.push('button[aria-label="Release claim #%s"]' % number)
        self.see('dialog h2', text='Release claim #%s?' % number)
        self.browser.press('Enter', 13)  # without a reason nothing is done
        self.browser.type('no longer needed')
        self.browser.press('Enter', 13)
        self.see('#said', text='Claim #%s is released.' % number)
        self.browser.wait('!%s.contentDocument.querySelector("#claims").textContent.includes("%s")' % (FRAME, consumer))
        self.push('#claims summary')
        self.see('#claims details td', text='no longer needed')

    def test_a_gpu_is_cordoned_and_given_back(self):
        self.see('.device', text=DEVICE)
        self.push('button[aria-label="Cordon device %s"]' % DEVICE)
        self.see('dialog[open] h2', text='Cordon device %s?' % DEVICE)
        self.browser.press('Escape', 27)
        self.browser.wait('!%s.contentDocument.querySelector("dialog[open]")' % FRAME)
        self.assertEqual(self.cordoned(), [])
        self.browser.press('Enter', 13)  # the focus is where it was
        self.see('dialog[open] input')
        self.browser.type(HOSTILE)
        self.browser.press('Enter', 13)
        self.see('#said', text='Device %s is cordoned' % DEVICE)
        self.see('.device .tag', text='cordoned')
        self.see('#verdict .reasons', text=HOSTILE.replace('\u202e', '\\u202e')[:60])
        self.assertEqual(self.get('page.querySelectorAll("img, b b").length'), 0)
        self.assertEqual(len(self.cordoned()), 1)
        self.push('button[aria-label="Uncordon device %s"]' % DEVICE)
        self.see('dialog[open] h2', text='Uncordon')
        self.browser.press('Enter', 13)
        self.see('#said', text='is uncordoned')
        self.see('button[aria-label="Cordon device %s"]' % DEVICE)
        self.assertEqual(self.cordoned(), [])

    def push_text(self, text):
        self.browser.wait('(page => !page.querySelector("dialog[open]") && [...page.querySelectorAll("#verdict button")].some(one => one.textContent === %s))'
                          '(%s.contentDocument)' % (json.dumps(text), FRAME))
        self.get('[...page.querySelectorAll("#verdict button")].find(one => one.textContent === %s).focus()' % json.dumps(text))
        self.browser.press('Enter', 13)

    def test_a_host_is_drained_retired_and_taken_back(self):
        number, consumer = self.claim()
        self.push_text('Cordon the host')
        self.see('dialog[open] input')
        self.browser.type('replaced')
        self.browser.press('Enter', 13)
        self.addCleanup(self.machine.run, 'computectl', 'uncordon', check=False)
        self.addCleanup(self.machine.run, 'computectl', 'retire', '--undo', check=False)
        self.see('#drain', text='1 claim is left on this host, and has to move:#%s %s' % (number, consumer))
        self.push_text('Retire the host …')
        self.see('dialog[open] h2', text='This host cannot be retired yet')
        self.see('dialog[open] li', text='%s, claim #%s' % (consumer, number))
        self.assertFalse(self.get('page.querySelector("dialog[open] button[type=submit]")'))
        self.picture('retire-refused')
        self.browser.press('Escape', 27)
        self.machine.run('computectl', 'release', number)
        self.see('#drain', text='✓ No claim is left on this host.')
        wait_until(lambda: self.machine.run('computectl', 'retire', '--dry-run', check=False).returncode == 0, 30, 'the end of the last share')
        self.push_text('Retire the host …')
        self.see('dialog[open] h2', text='Retire this host?')
        self.see('dialog[open] li', text=self.machine.ctl_json('status', check=False)['node'])
        self.picture('retire')
        self.focus('dialog[open] button[type=submit]')
        self.browser.press('Enter', 13)
        self.see('#said', text='The host is retired.')
        self.assertEqual(self.machine.ctl_json('status', check=False)['sync_state'], 'retired')
        self.picture('retired')
        self.push_text('Undo the retirement')
        self.see('dialog[open] h2', text='Report this host to Placement again?')
        self.browser.press('Enter', 13)
        self.see('#said', text='The host is not retired any more')
        self.push_text('Uncordon the host')
        self.see('dialog[open] h2', text='Uncordon')
        self.browser.press('Enter', 13)
        self.push_text('Cordon the host')
        self.browser.press('Escape', 27)
        self.machine.wait_state('synced')

    def test_a_sync_on_request(self):
        self.machine.run('computectl', 'sync')
        before = self.machine.ctl_json('status', check=False)['last_poll_usec']
        self.push_text('Sync now')
        self.see('#said', text='Polled: all is published.')
        self.assertGreater(self.machine.ctl_json('status', check=False)['last_poll_usec'], before)

    def test_what_comes_and_goes_takes_no_focus(self):
        self.get('[...page.querySelectorAll("#verdict button")].find(one => one.textContent === "Sync now").focus()')
        self.machine.run('computectl', 'cordon')
        self.addCleanup(self.machine.run, 'computectl', 'uncordon', check=False)
        self.see('#verdict button', text='Uncordon the host')
        self.assertEqual(self.get('page.activeElement.textContent'), 'Sync now')
        self.machine.run('computectl', 'uncordon')
        self.see('#verdict button', text='Cordon the host')
        self.assertEqual(self.get('page.activeElement.textContent'), 'Sync now')

    def test_what_differs(self):
        self.push('#differences button')
        self.see('#said', text='Placement, claims and guests agree.')
        self.get('[...page.querySelectorAll("#differences button")].at(-1).click()')
        self.see('#differences', text='the tree had the shape of this host.')

    def test_what_leaked_is_healed(self):
        self.configure('[DEFAULT]\nclaim_expiry_time = 1\n')
        self.machine.run('systemctl', 'reload', UNIT)
        root = self.machine.run('cat', '/var/lib/compute-agent/compute_id').stdout.strip()
        consumer = self.placement.place(None, {root: {'VCPU': 1}})
        time.sleep(3.2)  # its allocations are older than the end of its claim: evidence that its server ended
        claim = json.loads(self.machine.run('computectl', 'claim', '--json=short', '--consumer', consumer,
                                            '--resources', 'VCPU=1').stdout)
        self.machine.run('computectl', 'release', str(claim['id']))
        for _ in range(10):  # it is left alone until it was seen for a second
            self.push('#differences button')
            self.see('#said', text='.')
            if self.get('page.querySelector("#differences .findings")'):
                break
            time.sleep(0.5)
        self.see('#differences .findings', text='heal removes its share of this host from Placement')
        self.get('[...page.querySelectorAll("#differences button")].find(one => one.textContent === "Heal …").focus()')
        self.browser.press('Enter', 13)
        self.see('dialog[open] h2', text='Heal 1 of 1 finding?')
        self.browser.press('Enter', 13)
        self.see('#said', text='Placement, claims and guests agree.')
        self.see('#differences .findings', text='healed')
        self.assertEqual(self.placement.held(consumer), {})

    def test_the_agent_stops_and_comes_back(self):
        number, consumer = self.claim()
        self.see('#claims tbody tr', text=consumer)
        self.machine.run('systemctl', 'stop', UNIT)
        self.addCleanup(self.machine.run, 'systemctl', 'start', UNIT)
        self.see('.verdict.degraded', text='The agent does not run')
        self.assertFalse(self.get('page.querySelector("#claims")'))
        self.picture('stopped')
        self.machine.run('systemctl', 'start', UNIT)
        self.see('#claims tbody tr', 60, consumer)

    def test_a_failed_start_is_explained(self):
        self.addCleanup(self.machine.run, 'systemctl', 'restart', UNIT)
        self.addCleanup(self.machine.configure)
        self.machine.configure('[DEFAULT]\ncpu_allocation_ratio = many\n')
        self.machine.run('systemctl', 'restart', UNIT, check=False)
        self.see('.verdict.degraded .tag', text='Failed')
        self.see('.verdict.degraded .reason', text='compute-agent failed: /etc/compute-agent/compute-agent.conf')

    def test_wide_and_narrow_in_light_and_dark(self):
        self.machine.run('computectl', 'cordon', '--reason', 'fan is loud', DEVICE)
        self.addCleanup(self.machine.run, 'computectl', 'uncordon', DEVICE)
        number, _ = self.claim('VCPU=2,MEMORY_MB=2048,VGPU=1')
        self.see('.device .holders', text='#' + number)
        self.see('.device .tag', text='cordoned')
        for dark in (False, True):
            for width in (1280, 400):
                with self.subTest(width=width, dark=dark):
                    self.browser.look(width, 2100, dark)
                    self.browser.wait('%s.contentDocument.documentElement.classList.contains("dark") === %s' % (FRAME, json.dumps(dark)))
                    self.picture('%d-%s' % (width, 'dark' if dark else 'light'))
                    self.assertEqual(self.browser.evaluate(CONTRAST), [])
                    self.assertLessEqual(self.get('page.documentElement.scrollWidth'), width)
        self.browser.look(1280, 900, dark=False)

    def picture(self, name):
        folder = os.environ.get('COMPUTE_AGENT_ARTEFACTS')
        if folder:
            self.get('page.documentElement.scrollTo(0, 0)')
            Path(folder).mkdir(parents=True, exist_ok=True)
            self.browser.shoot(Path(folder) / ('cockpit-%s.png' % name))


class Viewer(Page):
    """Who logged in has no rights: all is to be read, and nothing to be changed."""

    @classmethod
    def setUpClass(cls):
        cls.log_in('viewer')

    def test_reads_and_may_not_write(self):
        _, consumer = self.claim()
        self.see('#claims tbody tr', text=consumer)
        self.push('#verdict button')
        self.see('dialog[open] h2', text='Cordon the host?')
        self.browser.type('because')
        self.browser.press('Enter', 13)
        self.see('dialog[open] [role=alert]', text='You may not do this: ')
        self.assertEqual(self.machine.ctl_json('status')['host_cordoned'], '')
        self.browser.press('Escape', 27)
        self.push('#differences button')
        self.see('#said', text='You may not do this: ')
        self.get('[...page.querySelectorAll("#verdict button")].at(-1).focus()')  # Sync now
        self.get('page.querySelector("#said").textContent = ""')
        self.browser.press('Enter', 13)
        self.see('#said', text='You may not do this: ')
