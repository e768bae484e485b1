/* The configuration's key `allow`: { { users = {…}, groups = {…}, tools = {…} } }, read into config_rules. */
#ifndef TOOLGATE_GATE_ALLOW_H
#define TOOLGATE_GATE_ALLOW_H

#include "gate/config.h"
#include "gate/settings.h"

setting_read setting_allow; /* into a struct config */

#endif
