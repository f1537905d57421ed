/* SPDX-License-Identifier: MIT */
/* An Accept header from anybody: a version that is served, or none, and the same when anything at
 * all is accepted beside it. */
#include "config.h"

#include <stdint.h>
#include <string.h>

#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/render/ignition.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int version_of(const char *accept)
{
	int minor = render_ignition_version(accept);

	if (minor != -1 && (minor < 2 || minor > 6))
		DIE("minor version %d", minor);
	return minor;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* exact size, so that reading one byte too many is seen; a header holds no NUL */
	cleanup_free char *accept = xstrndup((const char *)data, size);
	cleanup_free char *more = xasprintf("%s, */*", accept);
	int minor = version_of(accept);

	if (version_of(more) != minor && minor != -1)
		DIE("%d became %d", minor, version_of(more));
	return 0;
}
