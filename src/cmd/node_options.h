/* SPDX-License-Identifier: MIT */
/*
 * The command line and configuration file of tec-node, validated. All strings but those in `config`
 * are borrowed from argv or `conf`, or static.
 */
#ifndef TEC_CMD_NODE_OPTIONS_H
#define TEC_CMD_NODE_OPTIONS_H

#include <sys/types.h>

#include "tec/attest/cdh.h"
#include "tec/attest/pin.h"
#include "tec/base/conf.h"

/* In the order of the table of commands. */
enum node_command {
	NODE_AK,
	NODE_QUOTE,
	NODE_REGISTER,
	NODE_ATTEST,
	NODE_GET_RESOURCE,
	NODE_ENCRYPT,
	NODE_DECRYPT,
	NODE_SERVE,
	NODE_DOCTOR,
	NODE_REBIND,
	NODE_SEAL,
};

struct node_options {
	struct conf *conf; /* owned */
	enum node_command command;
	const char *tcti, *ak_file; /* ak_file NULL: write no file */
	uint32_t ak_handle;
	bool sample;         /* evidence that proves nothing */
	bool make;           /* ak make */
	uint8_t extra[32];   /* qualifying data of a quote */
	uint32_t timeout_ms; /* 0: none */
	/* serve */
	const char *listen, *socket; /* listen "": no TCP; socket NULL: none */
	mode_t socket_mode;
	gid_t socket_group; /* -1: the process's */
	struct attest_cdh_conf cdh;
	const char *console; /* NULL: none */
	/* rebind-servers */
	const char *device; /* NULL: all open disks */
	bool dry_run;
	bool seal;      /* doctor: this boot has to be sealed */
	bool or_reboot; /* seal: never return without having done so */
	/* Servers, path and registration, from the options or the pin's CONFIG. */
	struct attest_config config;
};

/* Read options as conf_start() does. If argv[0] is a name of the clevis pin, the arguments are those
 * that clevis passes to a pin. Call node_options_fini() whatever the result. */
enum conf_result node_options_read(struct node_options *o, int argc, char *const argv[]);
void node_options_fini(struct node_options *o);

#endif
