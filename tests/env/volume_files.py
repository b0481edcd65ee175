# SPDX-License-Identifier: LGPL-2.1-or-later
"""A Cinder backend for the tests, in which a volume is a sparse file below Cinder's state_path.

Nova gets a connection like that of GPFS: a path. Nova passes it to libvirt unchanged, without a mount or a device.
"""

from pathlib import Path

from cinder import interface
from cinder.volume import driver
from oslo_config import cfg

GIB = 1 << 30


@interface.volumedriver
class Files(driver.VolumeDriver):
    """Volumes on one machine, which are empty or copied from an image."""

    VERSION = '1'

    @staticmethod
    def _path(volume):
        return Path(cfg.CONF.state_path, 'volumes', volume.id)

    def check_for_setup_error(self):
        Path(cfg.CONF.state_path, 'volumes').mkdir(exist_ok=True)

    def _update_volume_stats(self):
        self._stats = {'volume_backend_name': 'files', 'vendor_name': 'tests', 'driver_version': self.VERSION,
                       'storage_protocol': 'file', 'total_capacity_gb': 100, 'free_capacity_gb': 100}

    def create_volume(self, volume):
        with open(self._path(volume), 'xb') as file:
            file.truncate(volume.size * GIB)

    def clone_image(self, context, volume, image_location, image_meta, image_service):
        self.create_volume(volume)
        with open(self._path(volume), 'r+b') as file:
            image_service.download(context, image_meta['id'], file)
        return {}, True

    def delete_volume(self, volume):
        self._path(volume).unlink(missing_ok=True)

    def create_export(self, context, volume, connector):
        pass

    def ensure_export(self, context, volume):
        pass

    def remove_export(self, context, volume):
        pass

    def initialize_connection(self, volume, connector):
        return {'driver_volume_type': 'gpfs', 'data': {'device_path': str(self._path(volume))}}

    def terminate_connection(self, volume, connector, **more):
        pass
