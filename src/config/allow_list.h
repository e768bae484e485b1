/* The key `allow`: { { users = {…}, groups = {…}, tools = {…} } }, read into config->allow. */
#ifndef TOOLGATE_CONFIG_ALLOW_LIST_H
#define TOOLGATE_CONFIG_ALLOW_LIST_H

#include "config/config.h"
#include "config/key_table.h"

key_reader allow_list_read; /* into a struct config */

#endif
