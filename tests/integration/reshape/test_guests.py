# SPDX-License-Identifier: LGPL-2.1-or-later
"""Classes change under guests, there and back, with a real libvirtd over made-up hardware.

One guest runs. Two more are only defined, because a guest with a device of the host cannot start here. They have a card and a slice
of a GPU. Memory encryption is left out, because libvirt finds only a QEMU without SEV on such a machine. test_moves.py has its
moves, with a recorded host.
"""

from tests.env.hosts import Cell, Gpu, Host, MdevType, Pci
from tests.env.libvirtd import guest_xml
from tests.env.scratch import wait_until
from tests.integration.reshape.test_reshape import MDEVS, ROOT, ReshapeCase

CARD, GPU = '0000:05:00.0', '0000:41:00.0'
CARD_PROVIDER, GPU_PROVIDER = 'compute-1_0000:05:00.0', 'compute-1_pci_0000_41_00_0'


def device_spec(name):
    return '{"vendor_id": "8086", "product_id": "1572", "resource_class": "%s"}' % name


class TestClasses(ReshapeCase):
    @staticmethod
    def make_host():
        return Host(name=ROOT, cells=[Cell(0, [0, 1, 2, 3], 4 << 20, {2048: 64})],
                    pci=[Pci(CARD)],
                    gpus=[Gpu(GPU, types={'nvidia-35': MdevType(
                        'M10', available=3, existing=[MDEVS[0]])})])

    def tell_root(self, name):
        """Returns options for a provider.yaml that gives the root five units of a class."""
        folder = self.agent.folder / name
        folder.mkdir(exist_ok=True)
        (folder / 'root.yaml').write_text(
            "meta: {schema_version: '1.0'}\nproviders:\n- identification: {name: %s}\n"
            '  inventories:\n    additional:\n    - %s: {total: 5}\n' % (ROOT, name))
        return {'compute': {'provider_config_location': folder}}

    def make_guests(self):
        """Creates one running and two defined guests, each with the allocation of a scheduler."""
        self.runner = self.libvirtd.start_guest('runner')
        for name, device in (('carded', CARD), ('sliced', MDEVS[0])):
            self.libvirtd.define(guest_xml(name, devices=[device]))
        self.carded, self.sliced = (self.libvirtd.virsh('domuuid', name).strip()
                                    for name in ('carded', 'sliced'))
        common = {'VCPU': 1, 'MEMORY_MB': 32}
        self.put(self.runner, {ROOT: {**common, 'CUSTOM_LICENSE': 2}})
        self.put(self.carded, {ROOT: common, CARD_PROVIDER: {'CUSTOM_NIC': 1}})
        self.put(self.sliced, {ROOT: {**common, 'CUSTOM_LICENSE': 1}, GPU_PROVIDER: {'VGPU': 1}})
        self.running = self.libvirtd.virsh('domid', 'runner')

    def holdings(self):
        return {name: self.held(getattr(self, name)) for name in ('runner', 'carded', 'sliced')}

    def check(self, before, names):
        """Checks that each class has its new name and that other allocations are unchanged. The claims must follow, and the guest
        must still run."""
        expected = {guest: {provider: {names.get(name, name): amount
                                       for name, amount in resources.items()}
                            for provider, resources in held.items()}
                    for guest, held in before.items()}
        self.assertEqual(self.holdings(), expected)
        for provider in (ROOT, CARD_PROVIDER, GPU_PROVIDER):
            self.assertEqual(self.classes(provider) & set(names), set())
        claims = {getattr(self, guest): held for guest, held in expected.items()}
        wait_until(lambda: self.claimed() == claims, 30, 'the claims to be what is held')
        self.assertEqual(self.libvirtd.virsh('domid', 'runner'), self.running)

    def check_card(self):
        self.assertEqual([(record['total'], record['reserved'])
                          for record in self.tree()[CARD_PROVIDER]['inventories'].values()], [(1, 1)])

    # Restarts the agent with the options. One reshape must rename the classes, and the next start must write nothing.
    def move(self, before, names, **options):
        mark = self.placement.mark()
        self.restart(**options)
        self.check(before, names)
        self.assertEqual([item[2] for item in self.placement.writes_since(mark)
                          if item[1] == '/reshaper'], [204])
        self.assertIn('Reshaped the provider tree of compute-1', self.agent.log())
        mark = self.placement.mark()
        self.restart()
        self.assertEqual(self.placement.writes_since(mark), [])
        self.check_card()

    def test_classes_there_and_back(self):
        def devices(mdev_class, card_class):
            return {'mdev_nvidia-35': {'mdev_class': mdev_class},
                    'pci': {'device_spec': device_spec(card_class),
                            'report_in_placement': 'true'}}

        def renames(text, root_class, card_class):
            return {'agent': {'renamed_resource_classes': text}, **self.tell_root(root_class),
                    'pci': {'device_spec': device_spec(card_class)}}

        self.start(devices={'enabled_mdev_types': 'nvidia-35'},
                   **devices('VGPU', 'CUSTOM_NIC'), **self.tell_root('CUSTOM_LICENSE'))
        self.agent.stop()
        self.make_guests()
        self.start()
        before = self.holdings()
        self.check(before, {})
        # The card is reserved, as by a cleaning or an operator. It stays so in each reshape.
        self.set_inventories(CARD_PROVIDER, lambda records: records['CUSTOM_NIC'].update(reserved=1))
        # The class of the mdevs and that of the PCI devices change in one reshape.
        self.move(before, {'VGPU': 'CUSTOM_SLICE', 'CUSTOM_NIC': 'CUSTOM_FAST_NIC'},
                  **devices('CUSTOM_SLICE', 'CUSTOM_FAST_NIC'))
        self.move(before, {}, **devices('VGPU', 'CUSTOM_NIC'))
        # A class in use stays in the request, although its entry left provider.yaml.
        empty = self.agent.folder / 'empty'
        empty.mkdir()
        self.move(before, {'VGPU': 'CUSTOM_SLICE'}, compute={'provider_config_location': empty},
                  **devices('CUSTOM_SLICE', 'CUSTOM_NIC'))
        self.move(before, {}, **devices('VGPU', 'CUSTOM_NIC'), **self.tell_root('CUSTOM_LICENSE'))
        # A class of the root and one of a card are renamed in one reshape.
        self.move(before, {'CUSTOM_LICENSE': 'CUSTOM_PERMIT', 'CUSTOM_NIC': 'CUSTOM_PORT'},
                  **renames('CUSTOM_LICENSE:CUSTOM_PERMIT, CUSTOM_NIC:CUSTOM_PORT',
                            'CUSTOM_PERMIT', 'CUSTOM_PORT'))
        self.move(before, {}, **renames('CUSTOM_PERMIT:CUSTOM_LICENSE, CUSTOM_PORT:CUSTOM_NIC',
                                        'CUSTOM_LICENSE', 'CUSTOM_NIC'))
