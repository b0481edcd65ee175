# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every trait that the driver can report is in os-traits or in the list of newer ones."""

import subprocess
import unittest

from tests.env.agent import build_folder

# These are newer than os-traits 3.4 of Debian 13. The reporter leaves them out if Placement does not know them.
LATER = (
    'COMPUTE_SOUND_MODEL_',
    'HW_ARCH_RISCV64',
)
# These are in os-traits 3.4, and not in os-traits 2.9 of Debian 12.
SINCE_3_4 = (
    'COMPUTE_ADDRESS_SPACE_',
    'COMPUTE_NET_VIF_MODEL_IGB',
    'COMPUTE_NET_VIRTIO_PACKED',
    'COMPUTE_SECURITY_STATELESS_FIRMWARE',
    'COMPUTE_SECURITY_TPM_CRB',
    'COMPUTE_SECURITY_TPM_SECRET_SECURITY_',
    'COMPUTE_SECURITY_TPM_TIS',
)
# The driver reports these only for some devices and processors.
DEVICES_SINCE_3_4 = ('HW_CPU_X86_AMD_SEV_ES', 'HW_PCI_LIVE_MIGRATABLE', 'HW_PCI_ONE_TIME_USE')


class TestTraitNames(unittest.TestCase):
    def test_names(self):
        # The package belongs to Debian's own interpreter.
        known = subprocess.run(
            ['/usr/bin/python3', '-c', 'import os_traits; print(*os_traits.get_traits())'],
            capture_output=True, text=True, timeout=60, check=True).stdout.split()
        told = subprocess.run([build_folder() / 'tests/unit/drivers/tree/test-host-traits', '--list'], capture_output=True,
                              text=True, timeout=60, check=True).stdout.split()
        self.assertGreater(len(told), 120)
        unknown = [trait for trait in told if trait not in known]
        new = 'COMPUTE_SECURITY_TPM_TIS' in known
        self.assertEqual([trait for trait in unknown if not trait.startswith(LATER if new else LATER + SINCE_3_4)], [])
        for trait in DEVICES_SINCE_3_4:
            self.assertEqual(trait in known, new, trait)
        for trait in ('HW_NUMA_ROOT', 'HW_CPU_X86_AMD_SEV', 'COMPUTE_NODE'):
            self.assertIn(trait, known)
