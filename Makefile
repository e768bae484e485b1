# toolgate: make, make demo, make test, make run, make install. `make help` lists them all.

BUILD  ?= build
PREFIX ?= /usr/local
DESTDIR ?=
CC     ?= cc
AR     ?= ar
SAN    ?=
DEPS   ?= yes

# Rooms, lowest floor first; each includes only from those before it (tests/spec/floors_spec.lua).
ROOMS  ?= base json schema policy ledger gate server cli

BUILD_PACKAGES := gcc make pkg-config libc6-dev libluajit-5.1-dev libevent-dev libyajl-dev libpcre2-dev \
                  libxxhash-dev libidn2-dev
TEST_PACKAGES  := luajit lua-busted lua-socket lua-cjson lua-posix libcmocka-dev systemd
LINT_PACKAGES  := lua-check clang-format clang-tidy cppcheck

LIBRARIES := luajit libevent_core yajl libpcre2-8 libxxhash libidn2

WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wwrite-strings \
            -Wvla -Wformat=2 -Wno-format-nonliteral
HARDEN   := -fstack-protector-strong -fstack-clash-protection -fcf-protection=full \
            -ftrivial-auto-var-init=zero -fPIE
LINKHARD := -pie -Wl,-z,relro,-z,now -Wl,-z,noexecstack
OPTIMISE := -O2 -g -D_FORTIFY_SOURCE=2

ifneq ($(SAN),)
BUILD    := $(BUILD)-san
OPTIMISE := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
endif

CPPFLAGS += -D_GNU_SOURCE -Isrc $(shell pkg-config --cflags $(LIBRARIES) 2>/dev/null)
CFLAGS   += -std=gnu11 $(WARNINGS) $(HARDEN) $(OPTIMISE)
LDFLAGS  += $(LINKHARD)
LDLIBS   += $(shell pkg-config --libs $(LIBRARIES) 2>/dev/null) -lm

SOURCES  := $(sort $(foreach room,$(ROOMS),$(wildcard src/$(room)/*.c)))
OBJECTS  := $(SOURCES:src/%.c=$(BUILD)/obj/%.o) $(BUILD)/obj/embedded.o
LIBRARY  := $(BUILD)/libtoolgate.a
LUA      := $(sort $(wildcard lua/*/*.lua))
UNITS    := $(sort $(foreach room,$(ROOMS),$(wildcard tests/unit/$(room)_*.c)))
UNIT_BIN := $(UNITS:tests/unit/%.c=$(BUILD)/unit/%)

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.PHONY: all help deps unit clean

all: $(BUILD)/toolgate

$(BUILD)/toolgate: $(BUILD)/obj/cli/main.o $(LIBRARY)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(LIBRARY): $(filter-out $(BUILD)/obj/cli/main.o,$(OBJECTS))
	@rm -f $@
	$(AR) rcs $@ $^

$(BUILD)/obj/%.o: src/%.c | packages-present
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/obj/embedded.o: $(BUILD)/gen/embedded.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

# Each Lua file becomes one byte array, and a table finds it by its name.
$(BUILD)/gen/embedded.c: $(LUA) Makefile
	@mkdir -p $(@D)
	@{ echo '/* Made by the Makefile from lua/. */'; \
	   echo '#include "base/embedded.h"'; echo '#include <stdio.h>'; echo '#include <stdlib.h>'; \
	   n=0; for f in $(LUA); do n=$$((n + 1)); echo "static const unsigned char text_$$n[] = {"; \
	     od -An -v -tx1 $$f | sed 's/ \([0-9a-f][0-9a-f]\)/0x\1,/g'; echo '0};'; done; \
	   echo 'static const struct { const char *name; const unsigned char *text; size_t len; } files[] = {'; \
	   n=0; for f in $(LUA); do n=$$((n + 1)); \
	     echo "{\"$${f#lua/}\", text_$$n, sizeof(text_$$n) - 1},"; done; \
	   echo '{0, 0, 0}};'; \
	   echo 'struct str embedded_text(const char *name)'; \
	   echo '{'; \
	   echo '    for (size_t i = 0; files[i].name; i++)'; \
	   echo '        if (strcmp(files[i].name, name) == 0)'; \
	   echo '            return (struct str){(const char *)files[i].text, files[i].len};'; \
	   echo '    fprintf(stderr, "toolgate: no embedded file %s\n", name);'; \
	   echo '    abort();'; \
	   echo '}'; } > $@

.PHONY: packages-present
packages-present:
	@pkg-config --exists $(LIBRARIES) 2>/dev/null || { \
	   echo "toolgate: libraries are missing; 'make deps' installs them (Debian: $(BUILD_PACKAGES))" >&2; exit 1; }

# ---- unit tests (cmocka); `make unit ROOMS="base json" BUILD=build-json` builds a part of the house alone ----
$(BUILD)/unit/%: tests/unit/%.c $(LIBRARY)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) -Itests/unit $(CFLAGS) -MMD -MP $(LDFLAGS) -o $@ $< $(LIBRARY) $(LDLIBS) -lcmocka

unit: $(UNIT_BIN)
	@for t in $(UNIT_BIN); do $$t || exit 1; done

clean:
	rm -rf build build-san

-include $(OBJECTS:.o=.d) $(UNIT_BIN:=.d)
