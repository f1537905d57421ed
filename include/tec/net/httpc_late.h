/* SPDX-License-Identifier: MIT */
/*
 * Load libcurl on demand, for a program that seldom needs it: tec-compute-pcrs contacts a registry in
 * few of its runs, and loading libcurl's 25 or so dependencies is a quarter of the cost of a run. A
 * program with src/net/httpc_late.c among its sources is not linked with libcurl and calls this before
 * its first httpc_new(). The library stays loaded until the process ends.
 */
#ifndef TEC_NET_HTTPC_LATE_H
#define TEC_NET_HTTPC_LATE_H

#include "tec/base/err.h"

/* ERR_INVALID: the library is not installed or lacks a function. */
int httpc_late_load(struct err *err) MUST_CHECK;

#endif
