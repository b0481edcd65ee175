/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/libvirt/domain.h"
#include "tests/fuzz/fuzz.h"

void fuzz_text(const char *text)
{
        _cleanup_(snapshot_domain_done) SnapshotDomain domain = { 0 };

        if (domain_parse(text, &domain, NULL) == 0)
                assert(domain.name && !uuid_empty(&domain.uuid));
}
