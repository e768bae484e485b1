/*
 * The protocol of the Bowtie project, which runs the official test suite
 * through every validator there is: a JSON object a line, start, dialect, run
 * and stop.
 */
#ifndef TOOLGATE_CLI_BOWTIE_H
#define TOOLGATE_CLI_BOWTIE_H

#include <stdio.h>

/* Answers until stop or the end of input; returns the exit code. */
int bowtie_serve(FILE *in, FILE *out);

#endif
