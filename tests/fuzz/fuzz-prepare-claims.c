/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "prepare/claims.h"
#include "tests/fuzz/fuzz.h"

/* A list that is accepted has addresses of PCI and ids above 0. */
void fuzz_text(const char *text)
{
        _cleanup_(prepare_claims_done) PrepareClaims claims = { 0 };
        char address[PCI_ADDRESS_SIZE];
        Error error = ERROR_NULL;

        if (prepare_parse_claims(text, strlen(text), &claims, &error) < 0) {
                assert(error.text[0] && claims.n_items == 0);
                return;
        }
        for (size_t i = 0; i < claims.n_items; i++) {
                assert(claims.items[i].id > 0);
                assert(pci_address_parse(claims.items[i].address, address) == 0);
        }
}
