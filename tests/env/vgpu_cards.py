# SPDX-License-Identifier: LGPL-2.1-or-later
"""GPUs whose virtual functions become vGPUs without an mdev, as NVIDIA's driver presents them since vGPU 17. Pure data and rules.

The rules are those of NVIDIA's vGPU documentation, completed by reports of users about real cards:

* A function that is no vGPU lists the types that it can become now. A function that is a vGPU lists nothing.

* Equal-size mode, the default: all vGPUs of a card have the same framebuffer. Types of different series with the same framebuffer share
  a card, for example L40S-2B and L40S-2Q. A card of SAME_TYPE allows only one type, as older drivers do.

* Mixed-size mode: vGPUs of different framebuffers share a card. Each vGPU begins at a valid placement. The placements of a type divide
  the framebuffer by a power of two, so that a card holds fewer vGPUs of some types: two L40S-16Q, not three. The mode cannot change
  while the card has a vGPU. It is lost when the driver is loaded, and when virtual functions are made or removed.

* MIG-backed types: a vGPU uses a whole GPU instance of its profile. The operator decides on the GPU instances.

* A number that is unknown or not creatable is refused with EINVAL. A vGPU that a process has open cannot be ended: EBUSY.

NVIDIA's tool sriov-manage changes the number of functions. Users report that the driver refuses a plain write to sriov_numvfs, which the
kernel's rules allow here. A test can inject an error for it (vgpu_sim.py).

The driver chooses the placement. NVIDIA does not document how. Here it is the smallest free block that fits.
"""

import errno
from dataclasses import dataclass, field

SAME_TYPE, EQUAL_SIZE, MIXED_SIZE = 'same-type', 'equal-size', 'mixed-size'
MODES = (SAME_TYPE, EQUAL_SIZE, MIXED_SIZE)
VF_OFFSET = 4  # of the routing id of the first virtual function, as on NVIDIA's cards
GIB = 1024  # in MiB


@dataclass(frozen=True)
class VgpuType:
    """framebuffer: in MiB. instance: the profile of the GPU instance that a MIG-backed vGPU needs, or ''."""

    number: int
    name: str
    framebuffer: int
    instance: str = ''


@dataclass(frozen=True)
class Model:
    """A model of a GPU. framebuffer: in MiB. functions: the highest number of virtual functions."""

    name: str
    device: int
    framebuffer: int
    functions: int
    types: tuple

    def __post_init__(self):
        object.__setattr__(self, '_numbers', {one.number: one for one in self.types})

    def type(self, number):
        """Returns the type with this number, or None."""
        return self._numbers.get(number)


def _series(first, name, letter, sizes):
    return [VgpuType(first + place, 'NVIDIA %s-%d%s' % (name, size, letter), size * GIB) for place, size in enumerate(sizes)]


_L40S_SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 48)
_A100_TYPES = ((1, 5, 'C'), (1, 5, 'CME'), (2, 10, 'C'), (3, 20, 'C'), (4, 20, 'C'), (7, 40, 'C'))
MODELS = {model.name: model for model in (
    Model('L40S', 0x26b9, 48 * GIB, 32, tuple([*_series(1425, 'L40S', 'B', (1, 2)), *_series(1427, 'L40S', 'Q', _L40S_SIZES),
                                               *_series(1437, 'L40S', 'A', _L40S_SIZES)])),
    Model('A100', 0x20b0, 40 * GIB, 16, tuple(
        VgpuType(700 + place, 'NVIDIA A100-%d-%d%s' % (slices, size, letter), size * GIB,
                 '%dg.%dgb%s' % (slices, size, '+me' if letter == 'CME' else ''))
        for place, (slices, size, letter) in enumerate(_A100_TYPES))))}


class CardError(OSError):
    """The driver or the kernel refuses a request. errno has its number."""

    def __init__(self, number, text):
        super().__init__(number, text)


@dataclass
class Function:
    """A virtual function. type: the number of its vGPU type, or 0. start: the place of its framebuffer in mixed-size mode, in MiB.
    opened: the number of open files of its VFIO group."""

    address: str
    type: int = 0
    start: int = 0
    opened: int = 0
    driver_override: str = ''


@dataclass
class Card:
    """A GPU. address: of its physical function. instances: the profiles of its GPU instances in MIG mode. placements: whether vGPUs of
    mixed sizes begin only at valid placements; without, each one fits that leaves enough framebuffer."""

    address: str
    model: str = 'L40S'
    mode: str = EQUAL_SIZE
    n_functions: int = 0
    numa_node: int = 0
    serial: str = ''
    loaded: bool = True
    placements: bool = True
    instances: list = field(default_factory=list)
    functions: list = field(default_factory=list)

    def __post_init__(self):
        self.functions = [one if isinstance(one, Function) else Function(**one) for one in self.functions]
        while len(self.functions) < self.n_functions:
            self.functions.append(Function(self.function_address(len(self.functions))))

    @property
    def kind(self):
        return MODELS[self.model]

    def function_address(self, index):
        """Returns the address of a virtual function by the routing ids of SR-IOV."""
        slot = int(self.address[8:10], 16) * 8 + int(self.address[11]) + VF_OFFSET + index
        bus = int(self.address[5:7], 16) + slot // 256
        return '%s:%02x:%02x.%d' % (self.address[:4], bus, slot % 256 // 8, slot % 8)

    def function(self, address):
        """Returns the virtual function with this address. Raises KeyError."""
        for one in self.functions:
            if one.address == address:
                return one
        raise KeyError(address)

    def vgpus(self):
        """Returns the functions that are vGPUs."""
        return [one for one in self.functions if one.type]

    def as_dict(self):
        """Returns the arguments of an equal card."""
        return {**vars(self), 'functions': [vars(one) for one in self.functions]}

    def copy(self):
        """Returns a copy with its own functions. The list of GPU instances is shared."""
        return Card(**self.as_dict())

    # Types.

    def creatable(self, address):
        """Returns the types that the function can become now."""
        return [one for one in self.kind.types if self.can_create(address, one)]

    def can_create(self, address, kind):
        """Returns whether the function can become a vGPU of this type now."""
        return kind is not None and self.loaded and not self.function(address).type and self._fits(kind)

    def _fits(self, new):
        present = [self.kind.type(one.type) for one in self.vgpus()]
        if self.instances or new.instance:
            used = [one.instance for one in present]
            return used.count(new.instance) < self.instances.count(new.instance)
        if self.mode == MIXED_SIZE and self.placements:
            return self._place(new) is not None
        if self.mode != MIXED_SIZE and any(one.framebuffer != new.framebuffer or self.mode == SAME_TYPE and one != new for one in present):
            return False
        return sum(one.framebuffer for one in present) + new.framebuffer <= self.kind.framebuffer

    def _is_free(self, start, size):
        return all(one.start >= start + size or one.start + self.kind.type(one.type).framebuffer <= start for one in self.vgpus())

    def _place(self, new):
        """Returns the placement of a new vGPU in mixed-size mode, or None."""
        total = step = self.kind.framebuffer
        while step // 2 >= new.framebuffer and step % 2 == 0:
            step //= 2
        best = None
        for start in range(0, total, step):
            if start + new.framebuffer > total or not self._is_free(start, new.framebuffer):
                continue
            block = step
            while block < total and self._is_free(start // (2 * block) * 2 * block, 2 * block):
                block *= 2
            if best is None or block < best[0]:
                best = (block, start)
        return best[1] if best else None

    def set_type(self, address, number):
        """Makes the function a vGPU of this type. 0 ends the vGPU."""
        function = self.function(address)
        if not self.loaded:
            raise CardError(errno.ENODEV, 'no driver')
        if number == 0:
            if function.opened:
                raise CardError(errno.EBUSY, 'a process has the vGPU open')
            function.type = function.start = 0
            return
        wanted = self.kind.type(number)
        if not self.can_create(address, wanted):
            raise CardError(errno.EINVAL, 'not creatable: %d' % number)
        function.start = self._place(wanted) if self.mode == MIXED_SIZE and self.placements else 0
        function.type = number

    # Changes of the whole card.

    def set_mode(self, mode):
        """Changes the mode as nvidia-smi does. It is refused while the card has a vGPU."""
        if mode not in MODES:
            raise CardError(errno.EINVAL, 'no mode: %s' % mode)
        if self.vgpus():
            raise CardError(errno.EBUSY, 'in use by another client')
        self.mode = mode

    def set_functions(self, count):
        """Makes or removes the virtual functions, as a write to sriov_numvfs. Another number than 0 is refused while there are any."""
        if count > self.kind.functions:
            raise CardError(errno.ERANGE, 'more than sriov_totalvfs')
        if count == len(self.functions):
            return
        if count and self.functions:
            raise CardError(errno.EBUSY, 'write 0 first')
        if any(one.opened for one in self.functions):
            raise CardError(errno.EBUSY, 'a process has a function open')
        self.functions = []
        self.n_functions = count
        self._forget_mode()
        self.__post_init__()

    def _forget_mode(self):
        if self.mode == MIXED_SIZE:
            self.mode = EQUAL_SIZE

    def set_instances(self, profiles):
        """Makes the GPU instances of MIG mode. It is refused while the card has a vGPU."""
        if self.vgpus():
            raise CardError(errno.EBUSY, 'in use by another client')
        self.instances = list(profiles)

    def unload(self):
        """Unloads the driver: all vGPUs and the mode are lost. A vGPU that a process has open prevents this."""
        if any(one.opened for one in self.functions):
            raise CardError(errno.EBUSY, 'the driver is in use')
        for one in self.functions:
            one.type = one.start = 0
        self._forget_mode()
        self.loaded = False

    def load(self):
        """Loads the driver again."""
        self.loaded = True

    # Questions of tests.

    def create(self, types):
        """Returns a copy of the card whose functions became vGPUs of these types ({address: number}). Larger ones are created first,
        which is the best order for the placements. Raises CardError."""
        trial = self.copy()
        for address, number in sorted(types.items(), key=lambda item: (-self.kind.type(item[1]).framebuffer, item[0])):
            trial.set_type(address, number)
        return trial

    def can_become(self, types):
        """Returns whether create() succeeds."""
        try:
            self.create(types)
        except CardError:
            return False
        return True

    def count_creatable(self, number):
        """Returns how many vGPUs of this type the card can create beside the present ones."""
        trial, count = self.copy(), 0
        for function in trial.functions:
            if trial.can_create(function.address, trial.kind.type(number)):
                trial.set_type(function.address, number)
                count += 1
        return count
