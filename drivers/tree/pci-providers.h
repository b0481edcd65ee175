/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* [pci] report_in_placement: one child provider "<nodename>_<ADDRESS>" per PCI device or physical
 * function that a spec matches (facts C7, F5). Virtual functions and vDPA devices count on the
 * provider of their physical function. Pure.
 *
 * The total and max_unit of a provider are the number of its devices; whatever else is in its
 * inventory stays, for an operator may have set it. Its traits are set exactly. Nothing that a
 * domain of this host has is taken away: a device whose spec was removed stays counted until it is
 * free. */

#include "drivers/tree/child-provider.h"

/* Makes, updates and removes providers. A device that Nova would refuse (a physical function and
 * its virtual functions both, virtual functions of different classes or traits, …) costs its own
 * provider, which stays as it was. The first reason is joined to update->problem; so is reporting
 * that was switched off while providers are there. -EINVAL, -ENOMEM. */
int pci_providers_update(TreeUpdate *update, Error *reterr);
