/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* MESSAGE_IDs of the journal entries that an operator acts on. Each has an entry in
 * systemd/compute-agent.catalog with the event, the reaction of the agent, and the options of
 * the operator. */

#define MESSAGE_PUBLISHED \
        "6a2f4d0a3c5b4b6f8a7d1f6f0b9d3c11" /* the tree in Placement is equal to the host */
#define MESSAGE_PLACEMENT_LOST \
        "c1c8f1de0f7c4f0fb2a3f6b4f1a86a12" /* Placement is unusable: served from local state */
#define MESSAGE_CREDENTIAL_REFUSED \
        "7c2be1a95d0f4b3c8e6a4f17d29b0e5a" /* Keystone or Placement rejects the credentials */
#define MESSAGE_EQUAL_AGAIN    "ebbeaa40c964466495a5269af8891924" /* after a logged difference */
#define MESSAGE_PLACEMENT_BACK "b5dcb7f1a1f84a0d9e7a2f3f4b7f5c13"
#define MESSAGE_HYPERVISOR_LOST \
        "0e0c6d0f8f2a4a4f9f1b6f0a2c3d4e14" /* the driver cannot poll; the last snapshot stays */
#define MESSAGE_HYPERVISOR_BACK "f7a1b2c3d4e5461728394a5b6c7d8e15"
#define MESSAGE_RESHAPE_NEEDED \
        "3b9c0d1e2f3a4b5c8d7e6f5a4b3c2d16" /* the shape must change under running guests */
#define MESSAGE_RESHAPED "53b0c1f7a2d94e6c8b1f0d3e5a7c9b20" /* the tree has its new shape */
#define MESSAGE_RESHAPE_BLOCKED \
        "a4c7d2e19f0b4d3a8e6c5b7f1d2a3c21" /* a consumer cannot be moved: its class stays */
#define MESSAGE_RESHAPE_FAILED "6e1f9b3d7c5a4820b4d6e8f0a2c1b322" /* the old shape stays */
#define MESSAGE_RESHAPE_FORBIDDEN \
        "c83e5a0f7d1b46929e4f60b8a7d5c133" /* the role service is missing */
#define MESSAGE_CLAIM_DB_SET_ASIDE \
        "9d8e7f6a5b4c4d3e8f2a1b0c9d8e7f17" /* the claim database was unreadable and was renamed */
#define MESSAGE_NO_BUS         "2c4e6a8b0d1f4357a9bcdef012345618" /* no system bus: no D-Bus service */
#define MESSAGE_RELOADED       "b1d7c3e95a604f27902f8c6b54ae1d1c"
#define MESSAGE_RELOAD_REFUSED "e3f80a6d2b914c7ea5d30917c6482f1d" /* the old settings stay */
#define MESSAGE_CONFIG_INVALID "5e7d9c1b3a2f4e6d8c0b1a2f3e4d5c19"
#define MESSAGE_UPDATE_REFUSED \
        "8f1e2d3c4b5a4968b7a6c5d4e3f2011a" /* Placement refused part of the tree */
#define MESSAGE_CLAIM_STORE_LOST \
        "4d5c6b7a8f9e4a1bbc2d3e4f5a6b7c1b" /* the claim database is not writable */
#define MESSAGE_DEVICES_REFUSED \
        "0cd5427cf3dc4befa2d33cbe6ab9b9ac" /* devices cannot be reported as configured */
#define MESSAGE_PROVIDER_CONFIG \
        "540f817e36cb43278a3ca475a02c52ad" /* a part of provider.yaml cannot be applied */
#define MESSAGE_DEVICE_MISSING \
        "b8b39bfdc2814222969fe7c819b8f718" /* an expected device is missing: withheld */
#define MESSAGE_DEVICE_EXCHANGED \
        "c15fe54e620147438d0ee07aaecb10b2" /* a claimed address has another device: withheld */
#define MESSAGE_DEVICE_BACK "5d3a9359b8b94cd89dccff4aacf0ef89"
#define MESSAGE_DEVICE_FORGOTTEN \
        "05944848a24f4d618ea82bd8c32d7de2" /* a missing device is no longer expected */
#define MESSAGE_PROVIDER_DELETED \
        "d31acae7cb0e4fc09c69ce7e1cc52a60" /* Placement deleted a provider of this host */
#define MESSAGE_INVENTORY_RETAINED \
        "7196754290634b72a350f047bfdc816d" /* in use, but not on this host: all reserved */
#define MESSAGE_INVENTORY_RELEASED \
        "2923ed3553fa42f7b5c96cee0ce75aa0" /* the host has it again, or it is unused */
#define MESSAGE_DEVICE_BLOCKED \
        "7c1e0a52d4b64f3f9a8e6b1d2f507a31" /* a guest uses its card or a part of it: withheld */
#define MESSAGE_DEVICE_UNBLOCKED "e05b9d4c8a7f4c21b6d31f9a0c4e7b58"
#define MESSAGE_CLAIM_ADOPTED \
        "1d7a3e5c9b204f6e8a1c5d7f9b3e2a1c" /* the agent created a claim for a guest */
#define MESSAGE_CLAIM_ORPHAN \
        "2e8b4f6d0c315a7f9b2d6e8a0c4f3b1d" /* a claim whose guest is gone was released */
#define MESSAGE_CLAIM_RESIZE_OVER \
        "c41f08d2a65e4b7d9b0c3d8e5f7a1629" /* one of two claims of a resize was released */
#define MESSAGE_CLAIM_PLACED \
        "64e9a7b03c1d4f58a2d6e08b7c5f9134" /* claim created for a consumer of Placement */
#define MESSAGE_CLOCK_JUMPED "0f4d2c66b0d84a5f9a5b8a1f1e6f7c21"
#define MESSAGE_GUEST_REFUSED \
        "96f5f1a85c7e4d5c8c4a51a1de2f3b70" /* libvirt's hook: the guest does not fit */
#define MESSAGE_CLAIM_CALLED \
        "daebb165bb2c4558a952e1aedc1532e4" /* a caller created, moved or ended a claim */
#define MESSAGE_CLAIM_DISAGREES \
        "3f9c5a7e1d426b8a0c3e7f9b1d5a4c1e" /* a guest differs from its claim */
#define MESSAGE_CLAIM_EVACUATED \
        "5a1d7c3f9e2b4860a4c8e6f0b2d4971c" /* a guest moved to another host: its claim ended */
#define MESSAGE_AUDIT_FINDINGS \
        "7c3e9f5a1b4d4a82b6e0c8f2d4a6b31e" /* disagreements were found at the start */
#define MESSAGE_AUDIT_HEALED "9e5a1b7c3d6f4ca4c8f2e0a4b6d8c53a" /* Placement was repaired */
#define MESSAGE_CORDONED     "b1c5e9d37f2a4be68a0c4e8f1d3b5722" /* host or device cordoned */
#define MESSAGE_UNCORDONED   "d3e7fb59a14c4d08ac2e60f13f5d7944"
#define MESSAGE_DEVICE_UNHEALTHY \
        "a3d4572a2ba74c8688e3936d8f3b281d" /* a health rule cordoned a device */
#define MESSAGE_DEVICE_REPORTED                                                            \
        "35730b3a4cd44ce88be0d71519d7048a" /* a health rule reports a device, and does not \
                                              cordon it */
#define MESSAGE_DEVICE_RECOVERED \
        "071aea18e4264e008d37ff4ab76a3dee" /* a device works again by its health rule */
#define MESSAGE_HEALTH_FAILED \
        "e60b7a0c3a344e1b94332eaac313637e" /* the health of devices is not watched completely */
#define MESSAGE_HEALTH_RULES "8cbc548923db4ff4b1c064d125cca07f" /* a health rule is not used */
#define MESSAGE_PLACEMENT_WRITES_PENDING \
        "4b8d2f6a0c9e4173a5d7f9e1c3b50d64" /* pending writes to Placement fail */
#define MESSAGE_PLACEMENT_SETTLED "6c0e4a8d2b7f4295b7f90c13e5d72f86"
#define MESSAGE_CLAIM_ROLLED_BACK \
        "8e2f6cba4d1943b7c90b2e35f7a94108" /* a claim was not finished before the agent ended */
#define MESSAGE_SECOND_REPORTER \
        "e6d02a6088a0760588000ece5d6723d3" /* another writer overwrites values of the agent */
#define MESSAGE_LOCAL_DISK \
        "4d8e2b6f9a1c4753b0d6e8f2a4c7913b" /* DISK_GB of the root: omitted, withheld or back */
#define MESSAGE_LEFT_TO_NOVA \
        "c9984aa6ade52356bfcee784c96f1fb0" /* [agent] nova: nova-compute reports this host */
#define MESSAGE_GUEST_FLOATS \
        "5f0c9e7712a84c43b6d1e8a94f27c0d6" /* an unpinned guest can run on dedicated CPUs */
#define MESSAGE_CORDON_LOST "a0418edc6f3b45d9eb2d4057190b631a" /* cordon.json is not readable */
#define MESSAGE_DEVICE_CLEANING \
        "5e1c8d07b3fa4962a7d40e6c92b8f153" /* its guest is gone: the units are started */
#define MESSAGE_DEVICE_CLEAN \
        "e27b40f9d6c1483ab5098f3e7d1c6a24" /* the units proved it: offered again */
#define MESSAGE_DEVICE_NOT_CLEAN \
        "90d3a6f18c5e4b27bd16e8a20f7c4935" /* no proof: withheld, and cordoned */
#define MESSAGE_DEVICE_USED_UNCLEAN \
        "c46f2e9b0a8d4715936b5d1fe0a872cc" /* a guest has it before it was proved to be clean */
#define MESSAGE_PARTITION_FAILED \
        "223925bca79540fd8b108e07b68e6d73" /* a unit failed: withheld, and cordoned */
#define MESSAGE_PREPARE_CHANGED \
        "2c7f5b0e94a1463d8e6a17d3f05b92c8" /* compute-agent-prepare changed a card or function */
#define MESSAGE_PREPARE_FAILED \
        "b96d0e3a7f1245c89a4e2d61c7803f5b" /* a card or function is not as configured */
