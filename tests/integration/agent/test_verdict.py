# SPDX-License-Identifier: LGPL-2.1-or-later
"""Status, doctor, exit codes, metrics and systemd's status line give the same verdict on a host. It is "ok" only if every check is."""

import json

from tests.env.libvirtd import guest_xml
from tests.env.scratch import wait_until
from tests.integration.claims.test_guests import GuestCase

OPTIONS = {'DEFAULT': {'claim_expiry_time': 1, 'update_resources_interval': 1}}


class TestVerdict(GuestCase):
    def start(self):
        agent = self.start_agent()
        agent.stop()
        self.metrics = agent.folder / 'metrics.prom'
        agent.configure({**OPTIONS, 'agent': {'metrics_file': self.metrics}})
        agent.start('synced')
        return agent

    def said(self, agent):
        """Returns the state, or "" if the sources disagree, and the page of the status."""
        shown = agent.ctl('status', check=False)
        doctor = agent.ctl('doctor', '--config', agent.config, '--json=short', check=False)
        state, page = agent.status()['state'], ' '.join(shown.stdout.split())
        findings = [one['state'] for one in json.loads(doctor.stdout)['findings'] if (one['cause'] or one['text']) in page]
        agree = ('compute_agent_state{state="%s"} 1\n' % state in self.metrics.read_text() and
                 shown.returncode == (0 if state == 'ok' else 4) and
                 (state == 'ok' or doctor.returncode == 4) and
                 ('bad' in findings) == (state == 'degraded'))
        return state if agree else '', page

    def wait_said(self, agent, state):
        return wait_until(lambda: next((page for found, page in (self.said(agent),) if found == state), None),
                          30, 'the state %s of all' % state)

    def test_more_is_promised_than_there_is(self):
        agent = self.start()
        self.wait_said(agent, 'ok')
        self.libvirtd.define(guest_xml('big', memory_mib=64, vcpus=70))
        guest = self.libvirtd.virsh('domuuid', 'big').strip()
        page = self.wait_said(agent, 'degraded')
        self.assertIn('claims exceed the capacity of the host (and ', page)
        self.assertIn('Claims use 70 of 64 VCPU of demo. See "computectl tree"', page)
        self.assertIn('Placement has no allocation of 1 of 1 claim. See "computectl audit"', page)
        self.assertTrue(agent.status()['status'].startswith('claims exceed the capacity of the host'))
        # A guest that fits, without an allocation in Placement.
        self.libvirtd.virsh('undefine', 'big')
        self.wait_said(agent, 'ok')
        self.libvirtd.define(guest_xml('fits', memory_mib=64, vcpus=2))
        guest = self.libvirtd.virsh('domuuid', 'fits').strip()
        page = self.wait_said(agent, 'warning')
        self.assertIn('Placement is equal to this host, but some guests have no allocations', page)
        self.assertIn('compute_agent_claims_unallocated 1\n', self.metrics.read_text())
        # The allocation is written later, and the next audit finds it.
        self.placement.place(guest, {agent.root(): {'VCPU': 2, 'MEMORY_MB': 64}})
        agent.ctl('audit', check=False)
        self.wait_said(agent, 'ok')
