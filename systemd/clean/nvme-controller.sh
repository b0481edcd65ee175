#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck disable=SC2034 # the scripts use the variables
# The common part of clean-nvme and prove-nvme, which read it: a controller with the driver nvme while the script runs. An answer of
# nvme-cli that is missing is a failure, and never counts as 0.

# In another locale, nvme-cli groups the digits of a number.
export LC_ALL=C
address=$1
sys=${2:-/sys}
device=$sys/bus/pci/devices/$address

fail() {
    echo "${0##*/}: $address: $*" >&2
    exit 1
}

driver_of() {
    [ ! -e "$device/driver" ] || basename "$(readlink "$device/driver")"
}

# Binds a driver. "" unbinds.
bind() {
    [ -z "$(driver_of)" ] || echo "$address" >"$device/driver/unbind"
    echo "$1" >"$device/driver_override"
    [ -z "$1" ] || echo "$address" >"$sys/bus/pci/drivers_probe"
}

# Prints the number of a field in an output of nvme-cli.
number() {
    value=$(printf '%s\n' "$2" | tr -d '()' | sed -nE "s/^(.* )?$1 *: *//p" | head -n 1)
    [ -n "$value" ] || fail "nvme-cli shows no $1"
    printf '0x%x\n' $((value))
}

sanitize_status() {
    log=$(nvme sanitize-log "/dev/$name") || fail "its sanitize log cannot be read"
    number SSTAT "$log"
}

live_controller() {
    for path in "$device"/nvme/nvme*; do
        [ "$(cat "$path/state" 2>/dev/null)" != live ] || basename "$path"
    done
}

namespaces() {
    for path in "$sys/block/$name"n*; do
        [ ! -e "$path" ] || basename "$path"
    done
}

# Waits until a command prints something else than "". The kernel starts a controller and finds its namespaces after bind() has returned.
# A controller can take 127 seconds to start.
wait_for() {
    reason=$1 seconds=150
    shift
    until [ -n "$("$@")" ]; do
        seconds=$((seconds - 1))
        [ $seconds -gt 0 ] || fail "$reason"
        sleep 1
    done
}

all_namespaces_found() {
    [ "$(namespaces | grep -c .)" != "$(echo "$active" | grep -c :0x)" ] || echo yes
}

# Sanitize erases the whole NVM subsystem, and another guest can have another controller of it. Bit 1 of CMIC says that there can be
# several. A drive with two ports sets it in a slot with one port too, so the controllers are counted.
check_alone() {
    cmic=$(number cmic "$identity")
    [ $((cmic & 2)) != 0 ] || return 0
    controllers=$(nvme list-ctrl "/dev/$name") || fail "the controllers of its subsystem cannot be listed"
    count=$(number "num of ctrls present" "$controllers")
    [ $((count)) = 1 ] || fail "its subsystem has other controllers, whose data can be that of other guests. Use a script of your own"
}

# The guest of a controller with namespace management (bit 3 of OACS) can detach a namespace, which keeps its data, or delete it. The list
# of all namespaces is that of the subsystem, so one that is not attached can belong to another controller.
check_namespaces() {
    [ -n "$(namespaces)" ] || fail "it has no namespace"
    oacs=$(number oacs "$identity")
    [ $((oacs & 8)) != 0 ] || return 0
    all=$(nvme list-ns "/dev/$name" --all) || fail "its detached namespaces cannot be listed"
    if [ "$all" != "$active" ]; then
        check_alone
        fail "it has a namespace that is not attached to this controller. Attach or delete it"
    fi
    unused=$(number unvmcap "$identity")
    # A number that the shell cannot read is a failure.
    [ $((unused)) -le "${NVME_UNUSED_BYTES:-0}" ] ||
        fail "$((unused)) bytes of it are in no namespace, more than NVME_UNUSED_BYTES of the unit. Create a namespace, or set that number"
}

# Binds the driver nvme. Sets the name of the controller and its identity, the output of "nvme id-ctrl".
# The guest's driver, such as vfio-pci, is bound again at the end, also after a failure and at a stop of the unit.
open_controller() {
    if [ "$(driver_of)" != nvme ]; then
        original=$(driver_of)
        trap 'bind "$original"' EXIT
        trap 'exit 143' HUP INT TERM
        bind nvme
    fi
    wait_for "the driver nvme has no controller of it that is live" live_controller
    name=$(live_controller)
    identity=$(nvme id-ctrl "/dev/$name") || fail "it cannot be identified"
    active=$(nvme list-ns "/dev/$name") || fail "its namespaces cannot be listed"
    wait_for "the kernel has not found exactly the active namespaces" all_namespaces_found
    udevadm settle || fail "udev has not settled"
}
