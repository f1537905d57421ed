/* SPDX-License-Identifier: MIT */
/* The command line of tec-compute-pcrs, validated: the options of the Rust tool, and more. */
#ifndef TEC_CMD_PCRS_OPTIONS_H
#define TEC_CMD_PCRS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "registries.h"

#include "tec/model/platforms.h"
#include "tec/measure/predict.h"

enum pcrs_command {
	PCRS_ALL,
	PCRS_PCR4,
	PCRS_PCR7,
	PCRS_PCR11,
	PCRS_PCR14,
	PCRS_VERIFY,
	PCRS_FETCH,
	PCRS_DIGEST,
	PCRS_EXTRACT,
	PCRS_EXTRACT_VARS, /* its name in earlier versions */
	PCRS_JOB,          /* no command: run as the operator's Job */
};

struct pcrs_platform {
	char *name;      /* owned */
	const char *dir; /* borrowed from conf */
};

/* Strings are borrowed from conf and argv. */
struct pcrs_options {
	struct conf *conf;
	enum pcrs_command command;
	const char *file; /* the first operand */
	const char *rootfs, *efivars, *mok_variables;
	const char *efivars_log; /* event log to take efivars from; NULL: none */
	enum measure_secure_boot secure_boot;
	bool uki, all_kernels, variants, explain, validation_off;
	enum pcr_boot_path boot_path;
	unsigned profile; /* of a UKI */
	const char *image, *digest, *nonce, *result;
	/* Image to fetch from a registry, NULL: none; into NULL: into a temporary directory. */
	const char *fetch, *into;
	struct registries_list mirrors, insecure;
	const char *registry_auth, *registry_ca, *arch;
	uint32_t timeout_s;
	struct pcrs_platform platform[MODEL_PLATFORMS_MAX];
	size_t n_platforms;
};

/* As conf_start(). */
enum conf_result pcrs_options_read(struct pcrs_options *o, int argc, char *const argv[]);
void pcrs_options_fini(struct pcrs_options *o);

#endif
