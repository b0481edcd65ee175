/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What every unit test includes: cmocka with the headers that it wants before it. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/macros.h"
