/* SPDX-License-Identifier: MIT */
/*
 * The main function of a fuzzer where there is no libFuzzer: runs each file of the committed corpus once.
 *
 *   fuzz_NAME [FILE...]	default: all of $TOP_SRCDIR/tests/fuzz/corpus/NAME
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tec/base/err.h"
#include "tec/base/file.h"
#include "tec/base/mem.h"

#define CORPUS_MAX (16u << 20) /* bytes of one input */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* Not every fuzzer has one. */
__attribute__((weak)) int LLVMFuzzerInitialize(int *argc, char ***argv);

static void replay(const char *path)
{
	struct err err = ERR_INIT;
	size_t len;
	char *text = file_read(path, CORPUS_MAX, &len, NULL, &err);
	uint8_t *data;

	if (!text)
		DIE("%s", err.text);
	/* As libFuzzer does it: not a byte more than there is. */
	data = xmalloc(len ? len : 1);
	memcpy(data, text, len);
	free(text);
	printf("%s\n", path);
	(void)LLVMFuzzerTestOneInput(data, len);
	free(data);
}

static unsigned replay_folder(const char *name)
{
	const char *top = getenv("TOP_SRCDIR");
	cleanup_free char *path = xasprintf("%s/tests/fuzz/corpus/%s", top ? top : ".", name);
	DIR *dir = opendir(path);
	unsigned n = 0;

	if (!dir)
		DIE("%s: %s", path, strerror(errno));
	for (struct dirent *entry; (entry = readdir(dir));) {
		cleanup_free char *file = NULL;

		if (entry->d_name[0] == '.')
			continue;
		file = xasprintf("%s/%s", path, entry->d_name);
		replay(file);
		n++;
	}
	closedir(dir);
	return n;
}

int main(int argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/'), *name = slash ? slash + 1 : argv[0];
	unsigned n = 0;

	if (LLVMFuzzerInitialize)
		(void)LLVMFuzzerInitialize(&argc, &argv);
	if (argc < 2)
		n = replay_folder(strncmp(name, "fuzz_", 5) == 0 ? name + 5 : name);
	for (int i = 1; i < argc; i++, n++)
		replay(argv[i]);
	printf("%u inputs replayed\n", n);
	return n ? 0 : 1;
}
