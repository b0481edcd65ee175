# SPDX-License-Identifier: LGPL-2.1-or-later
"""Nova's own libvirt driver (Debian's python3-nova) and the agent's make the same tree from the same host.

Both read the same configuration file and the same private libvirtd. The tests compare the inventories of every provider and all
HW_* and COMPUTE_* traits. TRAIT_DIFFERENCES and the member "differs" of a case list the intended differences with their reasons.
numa_in_placement is off, because Nova has no such option.
"""

import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from tests.env.agent import build_folder
from tests.env.case import EnvCase
from tests.env.fakesys import Cell, Host, demo_host, simple_host
from tests.env.libvirtd import Libvirtd

ROOT = Path(__file__).resolve().parents[3]
BUILD = build_folder()

# Traits that only one side reports, in any case.
NEWER = 'Nova tells it since a later version than the one installed (facts C8)'
TRAIT_DIFFERENCES = {
    'COMPUTE_NODE': 'in Nova the resource tracker adds it, not the driver (facts A9)',
    'COMPUTE_REMOTE_MANAGED_PORTS': 'in Nova the resource tracker takes it away where no PCI '
                                    'device is remote-managed (facts A9)',
    'HW_CPU_X86_SSE3': 'libvirt calls the feature pni; Nova looks for sse3 and never finds it',
    'HW_ARCH_X86_64': NEWER,
    'COMPUTE_ARCH_X86_64': NEWER,
    'COMPUTE_ADDRESS_SPACE_EMULATED': NEWER,
    'COMPUTE_ADDRESS_SPACE_PASSTHROUGH': NEWER,
    'COMPUTE_MEM_BACKING_FILE': NEWER,
    'COMPUTE_NET_VIRTIO_PACKED': NEWER,
    'COMPUTE_SECURITY_STATELESS_FIRMWARE': NEWER,
    'COMPUTE_SOUND_MODEL_AC97': NEWER,
    'COMPUTE_SOUND_MODEL_ES1370': NEWER,
    'COMPUTE_SOUND_MODEL_ICH6': NEWER,
    'COMPUTE_SOUND_MODEL_ICH9': NEWER,
    'COMPUTE_SOUND_MODEL_PCSPK': NEWER,
    'COMPUTE_SOUND_MODEL_SB16': NEWER,
    'COMPUTE_SOUND_MODEL_USB': NEWER,
    'COMPUTE_SOUND_MODEL_VIRTIO': NEWER,
    'COMPUTE_STORAGE_VIRTIO_FS': NEWER,
}

# Each case sets the options whose defaults differ between versions of Nova.
BASE = '''[DEFAULT]
my_ip = 127.0.0.1
instances_path = {path}
state_path = {path}
initial_cpu_allocation_ratio = 4.0
initial_ram_allocation_ratio = 1.0
initial_disk_allocation_ratio = 1.0
{default}
[compute]
{compute}
[libvirt]
connection_uri = {uri}
virt_type = qemu
{libvirt}
[devices]
{devices}
'''


@dataclass
class Case:
    """The sections of the file, and the allowed differences.

    differs maps the suffix of a provider ('' for the root) to (Nova's totals, the agent's), where None means no provider. It maps a
    trait to True. The reason is in "why". With "refused" both reject the file. If Nova alone rejects it, "only_nova" has the
    reason.
    """

    default: str = ''
    compute: str = ''
    libvirt: str = ''
    devices: str = ''
    differs: dict = field(default_factory=dict)
    why: str = ''
    refused: bool = False
    only_nova: str = ''


PLAIN = {
    'nothing set': Case(),
    'reserved': Case(default='reserved_host_memory_mb = 1000\nreserved_host_disk_mb = 1025\n'
                             'reserved_host_cpus = 2'),
    'ratios': Case(default='cpu_allocation_ratio = 16\nram_allocation_ratio = 1.5\n'
                           'disk_allocation_ratio = 2.5'),
    'shared CPUs': Case(compute='cpu_shared_set = 0-3,^2'),
    'dedicated CPUs': Case(compute='cpu_dedicated_set = 1-2'),
    'both': Case(compute='cpu_shared_set = 0\ncpu_dedicated_set = 1-3,^2'),
    'old set': Case(default='vcpu_pin_set = 1-3\nreserved_host_cpus = 1'),
    'old set beside the new': Case(default='vcpu_pin_set = 1-3', compute='cpu_shared_set = 0'),
    'memory in files': Case(default='ram_allocation_ratio = 1.0\nreserved_host_memory_mb = 0',
                            libvirt='file_backed_memory = 100000'),
    'memory in files and reserved': Case(default='ram_allocation_ratio = 1.0',
                                         libvirt='file_backed_memory = 4096'),
    'host-passthrough': Case(libvirt='cpu_mode = host-passthrough'),
    'custom CPU': Case(libvirt='cpu_mode = custom\ncpu_models = Haswell-noTSX'),
    'two custom CPUs': Case(libvirt='cpu_mode = custom\ncpu_models = Nehalem, EPYC'),
    'no CPU mode': Case(libvirt='cpu_mode = none'),
    'more CPU flags': Case(libvirt='cpu_model_extra_flags = vmx, +fma4'),
    'fewer CPU flags': Case(
        libvirt='cpu_model_extra_flags = -avx, -vmx', differs={'HW_CPU_X86_AVX': True,
                                                      'HW_CPU_X86_VMX': True,
                                                      'HW_CPU_X86_INTEL_VMX': True},
        why='Nova tells a feature that the flags take away as if they had added it'),
    'kvm': Case(libvirt='virt_type = kvm'),
    'TPM': Case(libvirt='swtpm_enabled = true', differs={'COMPUTE_SECURITY_TPM_1_2': True, 'COMPUTE_SECURITY_TPM_2_0': True,
                                                         'COMPUTE_SECURITY_TPM_TIS': True,  # since 2025.1
                                                         'COMPUTE_SECURITY_TPM_CRB': True},
                why='this host has no swtpm: libvirt offers no emulated TPM, and Nova tells one'),
    'raw images': Case(default='force_raw_images = false'),
    'excluded images': Case(compute='image_type_exclude_list = vmdk, qcow2'),
    'CPUs in both sets': Case(compute='cpu_shared_set = 0-2\ncpu_dedicated_set = 2-3',
                              refused=True),
    'reserved beside shared': Case(default='reserved_host_cpus = 1',
                                   compute='cpu_shared_set = 0-2', refused=True),
    'reserved beside dedicated': Case(default='reserved_host_cpus = 1',
                                      compute='cpu_dedicated_set = 0-2', refused=True),
    'old set beside dedicated': Case(default='vcpu_pin_set = 0',
                                     compute='cpu_dedicated_set = 1', refused=True),
    'shared CPU that is not there': Case(compute='cpu_shared_set = 0,999',
                                         only_nova='a CPU that is not there costs itself, and is named'),
    'dedicated CPU that is not there': Case(compute='cpu_dedicated_set = 999', refused=True),
    'empty set': Case(compute='cpu_shared_set = 1,^1', refused=True),
    'no set': Case(compute='cpu_shared_set = a-b', refused=True),
    'overcommitted memory in files': Case(default='ram_allocation_ratio = 2.0',
                                          libvirt='file_backed_memory = 4096', refused=True),
    'all memory in files reserved': Case(
        default='ram_allocation_ratio = 1.0\nreserved_host_memory_mb = 4096',
        libvirt='file_backed_memory = 4096', refused=True),
    'memory in files without a ratio': Case(
        libvirt='file_backed_memory = 4096',
        only_nova='a ratio that is not set is taken for 1.0, and always sent as that'),
}

GPUS = {
    'no type': Case(),
    'one type': Case(devices='enabled_mdev_types = nvidia-35'),
    'another type': Case(devices='enabled_mdev_types = nvidia-36'),
    'a type that nobody has': Case(devices='enabled_mdev_types = nvidia-99'),
    'two types': Case(devices='enabled_mdev_types = nvidia-35, nvidia-37\n'
                              '[mdev_nvidia-35]\ndevice_addresses = 0000:41:00.0\n'
                              '[mdev_nvidia-37]\ndevice_addresses = 0000:81:00.0'),
    'a class by address': Case(devices='enabled_mdev_types = nvidia-35, nvidia-36\n'
                                       '[mdev_nvidia-35]\ndevice_addresses = 0000:81:00.0\n'
                                       'mdev_class = CUSTOM_SMALL\n'
                                       '[mdev_nvidia-36]\ndevice_addresses = 0000:41:00.0'),
    'an only type by address': Case(devices='enabled_mdev_types = nvidia-35\n[mdev_nvidia-35]\n'
                                            'device_addresses = 0000:41:00.0\n'
                                            'mdev_class = CUSTOM_SMALL',
                               differs={'_pci_0000_41_00_0': ({'VGPU': 4}, {'CUSTOM_SMALL': 4}),
                                        '_pci_0000_81_00_0': ({'VGPU': 5}, None)},
                               why='Nova does not look at the addresses of an only type'),
    'a class for all': Case(
        devices='enabled_mdev_types = nvidia-35\n[mdev_nvidia-35]\nmdev_class = CUSTOM_SMALL',
        differs={'_pci_0000_41_00_0': ({'VGPU': 4}, {'CUSTOM_SMALL': 4}),
                 '_pci_0000_81_00_0': ({'VGPU': 5}, {'CUSTOM_SMALL': 5})},
        why='Nova forgets the class of a type without addresses (facts G2.6)'),
}


def sparse_host():
    """Returns a host with cells 0, 3 and 8 and without threads. Cell 3 has no huge pages, and cell 8 has no CPUs."""
    return Host(name='sparse', cells=[Cell(0, [0, 1], 2 << 20, {2048: 16}),
                                      Cell(3, [4, 5], (1 << 20) + 512),
                                      Cell(8, [], 1 << 20, {2048: 8})])


def totals(provider):
    if provider is None:
        return None
    return {name: record['total'] for name, record in provider['inventories'].items()}


def inventories(provider):
    fields = ('total', 'reserved', 'min_unit', 'max_unit', 'step_size', 'allocation_ratio')
    return {name: {key: record.get(key, 0) for key in fields}
            for name, record in provider['inventories'].items()}


def standard_traits(provider):
    return {trait for trait in provider['traits'] if trait.startswith(('HW_', 'COMPUTE_'))}


class NovaCase:
    """A mixin of a TestCase that runs Nova's driver."""

    def nova(self, libvirtd, paths):
        done = subprocess.run(
            [*libvirtd.enter(), '/usr/bin/python3', '-P', str(ROOT / 'tests/env/nova_tree.py'), *paths],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, check=False)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        return json.loads(done.stdout)


class TestNovaAgrees(NovaCase, EnvCase):
    maxDiff = None

    def write(self, number, case, uri):
        path = self.scratch.path / ('%d.conf' % number)
        path.write_text(BASE.format(path=self.scratch.path, uri=uri, default=case.default, compute=case.compute,
                                    libvirt=case.libvirt, devices=case.devices))
        return str(path)

    def ours(self, path):
        done = subprocess.run([BUILD / 'tests/probes/tree-probe', path], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60, check=False)
        if done.returncode:
            return {'refused': done.stderr}
        tree = json.loads(done.stdout)
        names = {provider['uuid']: provider['name'] for provider in tree['providers']}
        return {'tree': {provider['name']: {**provider, 'parent': names.get(provider['parent'])}
                         for provider in tree['providers']}}

    def compare(self, host, cases):
        libvirtd = Libvirtd(host, self.scratch).start()
        paths = [self.write(number, case, libvirtd.uri)
                 for number, case in enumerate(cases.values())]
        for path, nova, (name, case) in zip(paths, self.nova(libvirtd, paths), cases.items()):
            with self.subTest(host=host.name, case=name):
                self.compare_case(case, nova, self.ours(path), host.name)

    # Compares both trees, except for the differences that the case and TRAIT_DIFFERENCES list.
    def compare_case(self, case, nova, ours, root):
        if case.refused or case.only_nova:
            self.assertIn('refused', nova)
            self.assertIn('tree' if case.only_nova else 'refused', ours)
            return
        self.assertNotIn('refused', nova)
        self.assertNotIn('refused', ours)
        nova, ours = nova['tree'], ours['tree']
        for name in sorted({*nova, *ours}):
            expected = case.differs.get(name[len(root):])
            if expected:  # a later Nova can agree with the agent
                self.assertIn((totals(nova.get(name)), totals(ours.get(name))), (expected, expected[1:] * 2), case.why)
                continue
            self.assertIn(name, nova)
            self.assertIn(name, ours)
            self.assertEqual(ours[name]['parent'], nova[name]['parent'])
            self.assertEqual(inventories(ours[name]), inventories(nova[name]))
            different = standard_traits(ours[name]) ^ standard_traits(nova[name])
            self.assertEqual(different - set(TRAIT_DIFFERENCES) - set(case.differs), set())

    def test_uneven_host(self):
        self.compare(demo_host(), PLAIN)

    def test_gpus(self):
        self.compare(demo_host(), GPUS)

    def test_one_cell(self):
        self.compare(simple_host(), {name: PLAIN[name] for name in (
            'nothing set', 'reserved', 'both', 'ratios')})

    def test_eight_cells(self):
        self.compare(simple_host(cells=8, gpus=3), {
            'nothing set': Case(),
            'CPUs and GPUs': Case(compute='cpu_shared_set = 0-7\ncpu_dedicated_set = 8-31',
                                  devices='enabled_mdev_types = nvidia-36')})

    def test_sparse_host(self):
        self.compare(sparse_host(), {
            'nothing set': Case(),
            'CPUs': Case(compute='cpu_shared_set = 0,4\ncpu_dedicated_set = 1,5')})
