# SPDX-License-Identifier: LGPL-2.1-or-later
"""The drawing of "computectl tree --svg", made from a running agent."""

import uuid
from xml.etree import ElementTree

from tests.env.agent import Agent
from tests.env.case import EnvCase

SVG = '{http://www.w3.org/2000/svg}'


class Svg(EnvCase):
    def setUp(self):
        self.agent = Agent(self.scratch, bus=self.bus).start('standalone')

    def draw(self):
        return self.agent.ctl('tree', '--svg').stdout

    def test_the_host_and_its_claims(self):
        consumer = str(uuid.uuid4())
        before = self.draw()
        self.agent.claim('VCPU=1', consumer)
        text = self.draw()
        self.assertNotIn(consumer, before)
        self.assertEqual(text, self.draw())
        picture = ElementTree.fromstring(text.encode())
        self.assertEqual(picture.tag, SVG + 'svg')
        words = [node.text or '' for node in picture.iter(SVG + 'text')]
        host = self.agent.ctl_json('discover')
        self.assertEqual(words[0], host['nodename'])
        for cell in host['cells']:
            self.assertIn('NUMA cell %d' % cell['id'], words)
        self.assertTrue(any(consumer in word and 'VCPU=1' in word for word in words), words)
        titles = {node.text.split(':')[0] for node in picture.iter(SVG + 'title')}
        for cpu in (cpu['id'] for cell in host['cells'] for cpu in cell['cpus']):
            self.assertIn('CPU %d' % cpu, titles)

    def test_everything_is_inside(self):
        picture = ElementTree.fromstring(self.draw().encode())
        width, height = int(picture.get('width')), int(picture.get('height'))
        for box in picture.iter(SVG + 'rect'):
            x, y = int(box.get('x')), int(box.get('y'))
            self.assertLessEqual(x + int(box.get('width')), width)
            self.assertLessEqual(y + int(box.get('height')), height)
            self.assertGreaterEqual(min(x, y), 0)

    def test_json_is_the_tree(self):
        self.assertIn('providers', self.agent.ctl_json('tree', '--svg'))

    def test_no_agent_no_half_picture(self):
        self.agent.stop()
        done = self.agent.ctl('tree', '--svg', check=False)
        self.assertEqual((done.returncode, done.stdout), (1, ''))
