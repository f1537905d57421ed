/* SPDX-License-Identifier: MIT */
/*
 * tec-test-toml: base/toml, to be compared with another reader. Standard input: a JSON array of TOML
 * texts. Standard output, one line per text: {"value": DOCUMENT} or {"error": TEXT}. Not installed.
 */
#include "config.h"

#include <stdio.h>
#include <unistd.h>

#include "tec/base/file.h"
#include "tec/base/toml.h"

#define INPUT_MAX ((size_t)64 << 20)

static const struct json_limits input_limits = {
	.bytes = INPUT_MAX, .depth = 4, .tokens = 1000000, .nul = true};

int main(void)
{
	struct err err = ERR_INIT;
	size_t len = 0;
	cleanup_free char *text =
		file_read_fd(STDIN_FILENO, "standard input", INPUT_MAX, &len, &err);
	cleanup_json struct json_object *in =
		text ? json_parse(text, len, &input_limits, &err) : NULL;

	if (!in || !json_object_is_type(in, json_type_array)) {
		fprintf(stderr, "tec-test-toml: %s\n", err.text);
		return 1;
	}
	for (size_t i = 0; i < json_object_array_length(in); i++) {
		struct json_object *s = json_object_array_get_idx(in, i);
		struct err refused = ERR_INIT;
		struct json_object *o = toml_parse(
			json_object_get_string(s), (size_t)json_object_get_string_len(s), &refused);
		cleanup_json struct json_object *out =
			o ? json_add(json_obj(), "value", o)
			  : json_add_str(json_obj(), "error", refused.text);
		cleanup_free char *line = json_text(out);

		puts(line);
	}
	return 0;
}
