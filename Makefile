# toolgate: make, make demo, make test, make run, make install. `make help` lists all targets.

BUILD  ?= build
PREFIX ?= /usr/local
DESTDIR ?=
# Missing packages: yes installs them (as root or with sudo), no only lists them.
DEPS   ?= yes
CC     ?= cc
AR     ?= ar
SAN    ?=
# make V=1 shows every command.
V      ?=
AT     := $(if $(V),,@)

# Folders of src, lowest layer first; each includes only from those before it (tests/spec/layout/floors_spec.lua).
ROOMS  ?= base io json schema sandbox upstream traces ledger policy catalog result gate replay server cli

BUILD_PACKAGES := gcc make pkg-config libc6-dev libluajit-5.1-dev libevent-dev libyajl-dev libpcre2-dev \
                  libxxhash-dev libidn2-dev libhiredis-dev libseccomp-dev libcurl4-openssl-dev
DEMO_PACKAGES  := luajit lua-socket lua-cjson lua-posix
TEST_PACKAGES  := $(DEMO_PACKAGES) lua-busted libcmocka-dev systemd python3 redis-server procps openssl stunnel4 tzdata \
                  valgrind tmux zsh fish curl
LINT_PACKAGES  := lua-check clang-format clang-tidy
FUZZ_PACKAGES  := clang libclang-rt-14-dev
DEB_PACKAGES  := dpkg-dev debhelper fakeroot
PACKAGE_TEST_PACKAGES := lintian man-db mandoc mmdebstrap util-linux
# npm and python3-venv may be installed from another source than Debian: then they are not required.
CLIENT_PACKAGES = $(if $(shell command -v npm),,npm) \
                  $(if $(shell python3 -c 'import ensurepip' 2>/dev/null && echo yes),,python3-venv)

# promtool is in Debian's prometheus; chromium opens the page.
CONFORMANCE_PACKAGES := prometheus chromium

LIBRARIES := luajit libevent_core hiredis yajl libpcre2-8 libxxhash libidn2 libseccomp
# Not linked: src/upstream/http/fetch.c loads it for the first HTTP upstream; the build needs only its headers.
LOADED    := libcurl
# yajl's static archive, if there is one: in the shared library, calls between its own functions go through a table,
# which costs an eighth of its time. `make YAJL=-lyajl` links the shared library.
YAJL     ?= $(or $(wildcard $(shell pkg-config --variable=libdir yajl 2>/dev/null)/libyajl_s.a),-lyajl)
link      = $(patsubst -lyajl,$(YAJL),$(shell pkg-config --libs $(1) 2>/dev/null)) -lm

WARNINGS := -Wall -Werror=implicit-function-declaration -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wwrite-strings \
            -Wvla -Wformat=2 -Wno-format-nonliteral
# Checked jumps have another name for each processor.
MACHINE  := $(shell $(CC) -dumpmachine 2>/dev/null)
JUMPS    := $(if $(filter x86_64-%,$(MACHINE)),-fcf-protection=full,$(if $(filter aarch64-%,$(MACHINE)),-mbranch-protection=standard))
HARDEN   := -fstack-protector-strong -fstack-clash-protection $(JUMPS) \
            -ftrivial-auto-var-init=zero -fPIC -fvisibility=hidden
LINKHARD := -pie -Wl,-z,relro,-z,now -Wl,-z,noexecstack
OPTIMISE := -O2 -g -D_FORTIFY_SOURCE=2

ifneq ($(FUZZ),)
override BUILD := $(BUILD)-fuzz
override CC := clang
HARDEN   := -fPIC
OPTIMISE := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
else ifneq ($(COVERAGE),)
override BUILD := $(BUILD)-coverage
HARDEN   := -fPIC
OPTIMISE := -O1 -g --coverage -fprofile-update=atomic
else ifeq ($(SAN),thread)
override BUILD := $(BUILD)-tsan
OPTIMISE := -O1 -g -fsanitize=thread -fno-omit-frame-pointer
else ifneq ($(SAN),)
override BUILD := $(BUILD)-san
OPTIMISE := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
endif

CPPFLAGS += -D_GNU_SOURCE -Isrc $(shell pkg-config --cflags $(LIBRARIES) $(LOADED) 2>/dev/null)
CFLAGS   += -std=gnu11 $(WARNINGS) $(HARDEN) $(OPTIMISE)
LDFLAGS  += $(LINKHARD)
LDLIBS   += $(call link,$(LIBRARIES))

SOURCES  := $(sort $(foreach room,$(ROOMS),$(wildcard src/$(room)/*.c src/$(room)/*/*.c)))
OBJECTS  := $(SOURCES:src/%.c=$(BUILD)/obj/%.o) $(BUILD)/obj/embedded.o
LIBRARY  := $(BUILD)/libtoolgate.a
LUA      := $(sort $(wildcard lua/*/*.lua lua/*.lua))
EMBEDDED := $(LUA) $(wildcard policies/assistant/*.lua policies/assistant/lib/*.lua) src/schema/metaschemas.jsonl $(wildcard src/gate/*.schema.json) $(wildcard src/server/page/*)
# require "toolgate" for busted specs; the host that loads it provides LuaJIT.
MODULE   := $(if $(SAN),,$(BUILD)/toolgate.so)
MODULE_SOURCES := $(sort $(wildcard src/module/*.c))
MODULE_OBJECTS := $(MODULE_SOURCES:src/%.c=$(BUILD)/obj/%.o)
MODULE_LIBRARIES := $(filter-out luajit,$(LIBRARIES))
UNITS    := $(sort $(foreach room,$(ROOMS),$(wildcard tests/unit/$(room)/*.c tests/unit/$(room)/*/*.c)))
# The fuzzers' corpora are units, too, where all rooms are built; how long fuzz_linear takes is no test.
CORPORA  := $(if $(filter server,$(ROOMS)),$(filter-out linear,$(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))))
UNIT_BIN := $(UNITS:tests/unit/%.c=$(BUILD)/unit/%) $(CORPORA:%=$(BUILD)/unit/corpus/%)

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.PHONY: always all all-now help deps demo test golden golden-now run install uninstall clean lint unit conformance bench fuzz \
        test-threads test-threads-now soak soak-now coverage coverage-now fuzz-now fuzz-run demo-now test-now run-now lint-now conformance-now bench-now bench-upstream bench-upstream-now \
        bench-stall bench-stall-now \
        bench-ledger bench-ledger-now bench-replay bench-replay-now budget budget-now judgement judgement-now dist deb deb-now \
        static static-now wheel wheel-now npm-package npm-package-now

# Where pkg-config finds the libraries, no package is asked for: other systems than Debian may have them, too.
ifeq ($(shell pkg-config --exists $(LIBRARIES) $(LOADED) 2>/dev/null && echo yes),yes)
all: all-now
else
all:
	$(NEED) 'make' $(BUILD_PACKAGES)
	$(ANEW) all-now
endif

all-now: $(BUILD)/toolgate $(MODULE)

help:
	@echo 'make               build $(BUILD)/toolgate'
	@echo 'make demo          play an agent against a real daemon; print every call with its verdict'
	@echo 'make run           serve policies/ until Ctrl-C'
	@echo 'make test          run unit tests and specs (SAN=1: with the address and undefined-behaviour sanitizers)'
	@echo 'make test-threads  run the tests of the log and record threads under ThreadSanitizer, in $(BUILD)-tsan'
	@echo 'make golden        write tests/golden/*.txt, the messages that the tests expect (SPECS=FILE: those of one spec)'
	@echo 'make lint          run luacheck, clang-format, gcc -fanalyzer, clang-tidy'
	@echo 'make coverage      run the tests, and print which part of src they run'
	@echo 'make fuzz          run libFuzzer over tests/fuzz, FUZZ_SECONDS=60 each; ONLY=config,dispatch'
	@echo 'make conformance   run official MCP clients, the MCP and JSON Schema suites (npm, PyPI)'
	@echo 'make judgement     judge recorded traffic and spoiled calls, print how right the verdicts are (RECORDINGS=DIR: your own)'
	@echo 'make soak          run a fleet on one Redis and kill its members, chaos, bench-stall: CALLS=24000, CHAOS_SECONDS=1800 SEED=1'
	@echo 'make bench         measure verdicts per second and the cost of policies, against an echo server'
	@echo 'make bench-upstream  measure the cost between a client and a real MCP server (npm)'
	@echo 'make bench-ledger  measure the ledger in memory, in Redis and between daemons, beside its targets (redis-server)'
	@echo 'make bench-stall   measure how long another client waits while requests are at their limits (SECONDS=2 each)'
	@echo 'make bench-replay  measure toolgate replay: calls a second and instructions a call (valgrind)'
	@echo 'make budget        write tests/bench/budget.txt, the instructions that make test allows a check (valgrind)'
	@echo 'make reference     write docs/vocabulary.md, docs/types and man/*.[15] after a change of words, fields, keys or options'
	@echo 'make install       install to $$(DESTDIR)$$(PREFIX), by default $(PREFIX)'
	@echo 'make uninstall     remove what make install installed'
	@echo 'make dist          write $(BUILD)/toolgate-VERSION.tar.gz, the source'
	@echo 'make deb           build the Debian package in $(BUILD)/deb'
	@echo 'make static        build $(BUILD)/static/toolgate, which needs nothing but glibc'
	@echo 'make wheel         put it into a Python wheel, for pipx install or uvx'
	@echo 'make npm-package   put it into an npm package, for npx'
	@echo 'make deps          install the Debian packages that building and testing need'
	@echo 'make clean         remove build, build-san and build-tsan'
	@echo 'Each target lists missing packages and installs them first; with DEPS=no it only lists them.'

# ---- packages; pkg-config runs when make starts, so each target installs packages and then starts make again ----
NEED  = @DEPS=$(DEPS) sh tests/support/packages.sh
ANEW  = +@$(MAKE) --no-print-directory $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(shell nproc))

deps:
	$(NEED) 'make test' $(BUILD_PACKAGES) $(TEST_PACKAGES)

demo:
	$(NEED) 'make demo' $(BUILD_PACKAGES) $(DEMO_PACKAGES)
	$(ANEW) demo-now

test:
	$(NEED) 'make test' $(BUILD_PACKAGES) $(TEST_PACKAGES)
	$(ANEW) test-now

test-threads:
	$(NEED) 'make test-threads' $(BUILD_PACKAGES) $(TEST_PACKAGES)
	$(ANEW) SAN=thread test-threads-now

golden:
	$(NEED) 'make golden' $(BUILD_PACKAGES) $(TEST_PACKAGES)
	$(ANEW) golden-now

run:
	$(NEED) 'make run' $(BUILD_PACKAGES)
	$(ANEW) run-now

lint:
	$(NEED) 'make lint' $(BUILD_PACKAGES) $(TEST_PACKAGES) $(LINT_PACKAGES)
	$(ANEW) lint-now

conformance:
	$(NEED) 'make conformance' $(BUILD_PACKAGES) $(TEST_PACKAGES) $(CLIENT_PACKAGES) \
	    $(DEB_PACKAGES) $(PACKAGE_TEST_PACKAGES) $(CONFORMANCE_PACKAGES) \
	    $(STATIC_PACKAGES) $(CURL_PACKAGES)
	$(ANEW) conformance-now

judgement:
	$(NEED) 'make judgement' $(BUILD_PACKAGES) $(TEST_PACKAGES)
	$(ANEW) judgement-now

soak:
	$(NEED) 'make soak' $(BUILD_PACKAGES) $(TEST_PACKAGES)
	$(ANEW) soak-now

coverage:
	$(NEED) 'make coverage' $(BUILD_PACKAGES) $(TEST_PACKAGES)
	$(ANEW) coverage-now

fuzz:
	$(NEED) 'make fuzz' $(BUILD_PACKAGES) $(FUZZ_PACKAGES)
	$(ANEW) fuzz-now

bench:
	$(NEED) 'make bench' $(BUILD_PACKAGES) $(DEMO_PACKAGES)
	$(ANEW) bench-now

budget:
	$(NEED) 'make budget' $(BUILD_PACKAGES) $(DEMO_PACKAGES) valgrind
	$(ANEW) budget-now

bench-upstream:
	$(NEED) 'make bench-upstream' $(BUILD_PACKAGES) $(DEMO_PACKAGES) $(CLIENT_PACKAGES)
	$(ANEW) bench-upstream-now

bench-stall:
	$(NEED) 'make bench-stall' $(BUILD_PACKAGES) $(TEST_PACKAGES)
	$(ANEW) bench-stall-now

bench-ledger:
	$(NEED) 'make bench-ledger' $(BUILD_PACKAGES) $(DEMO_PACKAGES) redis-server redis-tools openssl stunnel4
	$(ANEW) bench-ledger-now

bench-replay:
	$(NEED) 'make bench-replay' $(BUILD_PACKAGES) $(DEMO_PACKAGES) valgrind
	$(ANEW) bench-replay-now

$(BUILD)/toolgate: $(BUILD)/obj/cli/main.o $(LIBRARY)
	$(if $(V),,@echo "  LINK $@")
	$(AT)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# nodelete: the timer of the policy deadline may still run when the host unloads its modules. The module contains its own
# yajl, because the host may have another version.
$(BUILD)/toolgate.so: $(MODULE_OBJECTS) $(LIBRARY)
	$(if $(V),,@echo "  LINK $@")
	$(AT)$(CC) $(CFLAGS) -shared -Wl,-z,relro,-z,now,-z,nodelete -Wl,-z,noexecstack -Wl,--exclude-libs,ALL -o $@ $^ \
	    $(call link,$(MODULE_LIBRARIES))

$(LIBRARY): $(filter-out $(BUILD)/obj/cli/main.o,$(OBJECTS))
	@rm -f $@
	$(if $(V),,@echo "  AR   $@")
	$(AT)$(AR) qcs $@ $^

# Changed flags rebuild all objects.
$(BUILD)/flags: always
	@mkdir -p $(@D)
	@echo '$(CC) $(CPPFLAGS) $(CFLAGS)' | cmp -s - $@ || echo '$(CC) $(CPPFLAGS) $(CFLAGS)' > $@

$(BUILD)/obj/%.o: src/%.c $(BUILD)/flags | packages-present
	@mkdir -p $(@D)
	$(if $(V),,@echo "  CC   $@")
	$(AT)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/obj/embedded.o: $(BUILD)/gen/embedded.c
	@mkdir -p $(@D)
	$(if $(V),,@echo "  CC   $@")
	$(AT)$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

# Compares contents, not times: a changed file may be older than the last build.
$(BUILD)/gen/embedded.sum: always
	@mkdir -p $(@D)
	@cksum $(EMBEDDED) | cmp -s - $@ || cksum $(EMBEDDED) > $@

# Each file becomes one byte array; a table maps names to arrays.
$(BUILD)/gen/embedded.c: $(BUILD)/gen/embedded.sum Makefile
	@mkdir -p $(@D)
	@{ echo '/* Made by the Makefile from lua/ and data files. */'; \
	   echo '#include "base/embedded.h"'; echo '#include <stdio.h>'; echo '#include <stdlib.h>'; \
	   n=0; for f in $(EMBEDDED); do n=$$((n + 1)); echo "static const unsigned char text_$$n[] = {"; \
	     od -An -v -tx1 $$f | sed 's/ \([0-9a-f][0-9a-f]\)/0x\1,/g'; echo '0};'; done; \
	   echo 'static const struct { const char *name; const unsigned char *text; size_t len; } files[] = {'; \
	   n=0; for f in $(EMBEDDED); do n=$$((n + 1)); \
	     echo "{\"$${f#lua/}\", text_$$n, sizeof(text_$$n) - 1},"; done; \
	   echo '{0, 0, 0}};'; \
	   echo 'struct str embedded_text(const char *name)'; \
	   echo '{'; \
	   echo '    for (size_t i = 0; files[i].name; i++)'; \
	   echo '        if (strcmp(files[i].name, name) == 0)'; \
	   echo '            return (struct str){(const char *)files[i].text, files[i].len};'; \
	   printf '%s\n' '    fprintf(stderr, "toolgate: no embedded file %s\n", name);'; \
	   echo '    abort();'; \
	   echo '}'; } > $@

.PHONY: packages-present
packages-present:
	@pkg-config --exists $(LIBRARIES) $(LOADED) 2>/dev/null || { \
	   echo "toolgate: libraries are missing; 'make deps' installs them (Debian: $(BUILD_PACKAGES))" >&2; exit 1; }

# ---- unit tests (cmocka); `make unit ROOMS="base json" BUILD=build-json` builds only those folders ----
$(BUILD)/unit/%: tests/unit/%.c $(LIBRARY)
	@mkdir -p $(@D)
	$(if $(V),,@echo "  TEST $@")
	$(AT)$(CC) $(CPPFLAGS) -Itests/unit -Itests/bench $(CFLAGS) -MMD -MP $(LDFLAGS) -o $@ $< $(filter %.o,$^) $(LIBRARY) $(LDLIBS) -lcmocka

$(CORPORA:%=$(BUILD)/unit/corpus/%): $(BUILD)/unit/corpus/%: tests/fuzz/replay.c $(LIBRARY)
	@mkdir -p $(@D)
	$(if $(V),,@echo "  TEST $@")
	$(AT)$(CC) $(CPPFLAGS) -DFUZZ_SOURCE='"fuzz_$*.c"' -DFUZZ_CORPUS='"tests/fuzz/corpus/$*"' $(CFLAGS) -MMD -MP $(LDFLAGS) \
	    -o $@ $< $(LIBRARY) $(LDLIBS) -lcmocka

unit: $(UNIT_BIN)
	@for t in $(UNIT_BIN); do $$t || exit 1; done

# ---- files that the program prints (tests/spec/docs/vocabulary_spec.lua compares them) ----
.PHONY: reference
reference: $(BUILD)/toolgate
	@mkdir -p docs/types
	$(BUILD)/toolgate words --format markdown > $(BUILD)/vocabulary.md
	$(BUILD)/toolgate words --format luacats > $(BUILD)/types.lua
	luajit man/command_page.lua $(BUILD)/toolgate man/toolgate.1.in > $(BUILD)/toolgate.1
	mv $(BUILD)/toolgate.1 man/toolgate.1
	luajit man/config_page.lua $(BUILD)/toolgate docs/toolgate.lua > $(BUILD)/config.5
	mv $(BUILD)/config.5 man/toolgate.lua.5
	mv $(BUILD)/vocabulary.md docs/vocabulary.md
	luajit man/policy_page.lua docs/vocabulary.md src/base/version.h > $(BUILD)/policy.5
	mv $(BUILD)/policy.5 man/toolgate-policy.5
	mv $(BUILD)/types.lua docs/types/toolgate.lua

# ---- targets that need the packages ----
demo-now: $(BUILD)/toolgate
	luajit tests/support/demo.lua $(BUILD)/toolgate

test-now: $(BUILD)/toolgate $(BUILD)/toolgate-bench $(MODULE) $(UNIT_BIN)
	@$(if $(SAN)$(COVERAGE),KEEP_TIMES=1) TOOLGATE=$(BUILD)/toolgate luajit tests/support/suite.lua $(UNIT_BIN)

# ThreadSanitizer needs addresses that are not random (setarch -R). Daemons write their reports to files, so that one which a
# spec does not look at fails the target, too.
THREAD_UNITS := $(BUILD)/unit/io/record_sink $(BUILD)/unit/base/log
THREAD_SPECS := tests/spec/server/stalled_log_spec.lua tests/spec/gate/decision_log_spec.lua tests/spec/gate/decision_sinks_spec.lua
test-threads-now: $(BUILD)/toolgate $(THREAD_UNITS)
	@rm -rf $(BUILD)/reports && mkdir -p $(BUILD)/reports
	@TSAN_OPTIONS="log_path=$(abspath $(BUILD))/reports/race" \
	    SPECS="$(THREAD_SPECS)" TOOLGATE=$(BUILD)/toolgate setarch -R luajit tests/support/suite.lua $(THREAD_UNITS); code=$$?; \
	cat $(BUILD)/reports/* 2>/dev/null && exit 1; exit $$code

golden-now: $(BUILD)/toolgate $(BUILD)/toolgate-bench $(MODULE) $(if $(SPECS),,$(UNIT_BIN))
	@mkdir -p tests/golden
	@GOLDEN=write TOOLGATE=$(BUILD)/toolgate luajit tests/support/suite.lua $(if $(SPECS),,$(UNIT_BIN))

RUN_SOCKET := $(abspath $(BUILD))/toolgate.sock
run-now: $(BUILD)/toolgate
	@echo 'Try in another shell:  $(BUILD)/toolgate tools --socket $(RUN_SOCKET)'
	@$(BUILD)/toolgate serve --socket $(RUN_SOCKET) --policies policies

# SUITE=DIR: the JSON Schema test suite, if it is not in the folder beside the project.
conformance-now: $(BUILD)/toolgate $(BUILD)/toolgate-bench
	@TOOLGATE=$(BUILD)/toolgate CLIENTS=$(abspath $(BUILD))/clients SUITE=$(SUITE) luajit tests/clients/run.lua

# tests/judgement/run.lua lists its settings.
judgement-now: $(BUILD)/toolgate
	@TOOLGATE=$(BUILD)/toolgate luajit tests/judgement/run.lua

# The fleet, then chaos, then how long another client waits; a part that fails does not keep the next from running.
# ONLY=chaos or ONLY=stall plays one of the latter; other names choose stories of the fleet (tests/clients/fleet.lua).
CHAOS_SECONDS ?= 1800
SEED          ?= 1
soak-now: $(BUILD)/toolgate
	@failed=0; \
	case '$(ONLY)' in chaos|stall) ;; *) TOOLGATE=$(BUILD)/toolgate luajit tests/clients/fleet.lua || failed=1;; esac; \
	case '$(ONLY)' in ''|chaos) \
	    python3 tests/clients/chaos.py $(BUILD)/toolgate $(CHAOS_SECONDS) $(SEED) || failed=1;; esac; \
	case '$(ONLY)' in ''|stall) TOOLGATE=$(BUILD)/toolgate luajit tests/bench/stall.lua $(SECONDS) || failed=1;; esac; \
	exit $$failed

# Which lines of src the units, the fuzzers' corpora and the specs run: a line for each room, the files that are covered
# least, the sum. Daemons that a spec kills, and those of other users, leave no counts.
coverage-now:
	+@$(MAKE) --no-print-directory COVERAGE=1 test-now || true
	@luajit tests/support/coverage.lua $(BUILD)-coverage

# Runs each tests/fuzz/fuzz_X.c over its corpus for FUZZ_SECONDS; $(BUILD)-fuzz/fuzz keeps the findings. ONLY=config,policy
# selects targets. Undefined behaviour ends a target as a crash does.
FUZZ_SECONDS ?= 60
comma := ,
FUZZERS = $(if $(ONLY),$(subst $(comma), ,$(ONLY)),$(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c)))
fuzz-now:
	+@$(MAKE) --no-print-directory FUZZ=1 fuzz-run
	$(if $(ONLY),,@$(CC) $(CPPFLAGS) -g -O1 -std=gnu11 -fsanitize=address,undefined -fno-sanitize-recover=all \
	    -o $(BUILD)-fuzz/fuzz/json_reader tests/fuzz/json_reader.c $(filter src/base/% src/json/% src/io/file.c,$(SOURCES)) \
	    $(BUILD)-fuzz/gen/embedded.c $(LDLIBS) && \
	    python3 tests/fuzz/json_differential.py $(BUILD)-fuzz/fuzz/json_reader tests/fuzz/corpus/json $(FUZZ_SECONDS))

fuzz-run: $(FUZZERS:%=$(BUILD)/fuzz/%)
	@for target in $(FUZZERS); do \
	    echo "== $$target"; mkdir -p $(BUILD)/fuzz/found-$$target; \
	    $(BUILD)/fuzz/$$target -max_len=4096 -max_total_time=$(FUZZ_SECONDS) -artifact_prefix=$(BUILD)/fuzz/ \
	        $(BUILD)/fuzz/found-$$target tests/fuzz/corpus/$$target || exit 1; \
	done

$(BUILD)/fuzz/%: tests/fuzz/fuzz_%.c $(LIBRARY)
	@mkdir -p $(@D)
	$(if $(V),,@echo "  CC   $@")
	$(AT)$(CC) $(CPPFLAGS) $(CFLAGS) -fsanitize=fuzzer -MMD -MP -o $@ $< $(LIBRARY) $(LDLIBS)

bench-now: $(BUILD)/toolgate $(BUILD)/toolgate-bench
	$(BUILD)/toolgate-bench socket
	$(BUILD)/toolgate-bench policy
	TOOLGATE=$(BUILD)/toolgate luajit tests/bench/reload_under_load.lua

# On purpose only: a change that costs more says so in its commit (CONTRIBUTING.md).
budget-now: $(BUILD)/toolgate
	@TOOLGATE=$(BUILD)/toolgate luajit tests/bench/instructions.lua --write-budget
	@git diff --stat tests/bench/budget.txt

# ROUNDS=20 CALLS=1000: per variant.
bench-upstream-now: $(BUILD)/toolgate $(BUILD)/bench/relay
	@TOOLGATE=$(BUILD)/toolgate RELAY=$(BUILD)/bench/relay CLIENTS=$(abspath $(BUILD))/clients luajit tests/bench/upstream.lua $(ROUNDS) $(CALLS)

# SECONDS=2: of each kind. Fails if another client's ping waits longer than the bounds in tests/bench/stall.lua.
bench-stall-now: $(BUILD)/toolgate
	@TOOLGATE=$(BUILD)/toolgate luajit tests/bench/stall.lua $(SECONDS)

# ROUNDS=7: per variant; takes five minutes.
bench-ledger-now: $(BUILD)/toolgate $(BUILD)/bench/ledger
	@TOOLGATE=$(BUILD)/toolgate BENCH=$(BUILD)/bench/ledger luajit tests/bench/ledger.lua $(ROUNDS)

# ROUNDS=5 CALLS=200000
bench-replay-now: $(BUILD)/toolgate
	@TOOLGATE=$(BUILD)/toolgate luajit tests/bench/replay.lua

# Not installed: benchmarks of verdicts and policies, and the harness of the Bowtie project.
BENCH_SOURCES := $(sort $(wildcard tests/bench/toolgate-bench/*.c))
BENCH_OBJECTS := $(BENCH_SOURCES:tests/bench/toolgate-bench/%.c=$(BUILD)/obj/bench/%.o)
BENCH_POLICIES := $(patsubst tests/bench/toolgate-bench/%,$(BUILD)/gen/bench/%.h,$(wildcard tests/bench/toolgate-bench/*.lua))
$(BUILD)/toolgate-bench: $(BENCH_OBJECTS) $(LIBRARY)
	$(if $(V),,@echo "  LINK $@")
	$(AT)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/obj/bench/%.o: tests/bench/toolgate-bench/%.c $(BUILD)/flags $(BENCH_POLICIES) | packages-present
	@mkdir -p $(@D)
	$(if $(V),,@echo "  CC   $@")
	$(AT)$(CC) $(CPPFLAGS) -Itests/bench/toolgate-bench -I$(BUILD)/gen/bench $(CFLAGS) -MMD -MP -c -o $@ $<

# Unit tests that use the load generator or the measured calls.
$(BUILD)/unit/cli/pass_path: $(BUILD)/obj/bench/subjects.o $(BUILD)/obj/bench/policy_folder.o

# A Lua file as a C string.
.SECONDARY: $(BENCH_POLICIES)
$(BUILD)/gen/bench/%.lua.h: tests/bench/toolgate-bench/%.lua
	@mkdir -p $(@D)
	@sed 's/[\\"]/\\&/g; s/.*/"&\\n"/' $< > $@

$(BUILD)/bench/%: tests/bench/%.c $(LIBRARY)
	@mkdir -p $(@D)
	$(if $(V),,@echo "  CC   $@")
	$(AT)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP $(LDFLAGS) -o $@ $< $(LIBRARY) $(LDLIBS)

# These analyzer warnings are off because gcc 12 does not follow arenas and structs passed by value; clang-tidy covers
# them. .clang-tidy lists its checks. Keep both free of warnings.
ANALYZER = -Wno-analyzer-malloc-leak -Wno-analyzer-null-argument -Wno-analyzer-null-dereference \
           -Wno-analyzer-use-of-uninitialized-value -Wno-analyzer-use-after-free
C_FILES = $(wildcard src/*/*.c src/*/*.h src/*/*/*.c src/*/*/*.h tests/unit/*.h tests/unit/*/*.c tests/unit/*/*.h tests/unit/*/*/*.c tests/bench/*.c tests/bench/*/*.[ch])
lint-now:
	luacheck --quiet lua/cli lua/replay lua/report lua/policy lua/templates lua/known_tools.lua lua/provider_formats.lua policies docs/toolgate.lua man tests
	luacheck --quiet --read-globals redis KEYS ARGV unpack -- lua/ledger
	clang-format --dry-run -Werror $(C_FILES)
	printf '%s\n' $(SOURCES) $(MODULE_SOURCES) | xargs -P$(shell nproc) -n1 \
	    gcc $(CPPFLAGS) -std=gnu11 -O2 -Werror -fanalyzer $(ANALYZER) -c -o /dev/null
	printf '%s\n' $(SOURCES) $(MODULE_SOURCES) | xargs -P$(shell nproc) -n4 sh -c 'clang-tidy --quiet "$$@" -- $(CPPFLAGS) -std=gnu11' sh

# ---- installation ----
LUADIR  ?= $(PREFIX)/lib/lua/5.1
UNITDIR ?= $(PREFIX)/lib/systemd/system
USERUNITDIR ?= $(PREFIX)/lib/systemd/user
DOCDIR  ?= $(PREFIX)/share/doc/toolgate
MANDIR  ?= $(PREFIX)/share/man
BASHDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR  ?= $(PREFIX)/share/zsh/site-functions
FISHDIR ?= $(PREFIX)/share/fish/vendor_completions.d

PAGES    := $(sort $(wildcard man/*.[1-9]))
DOCUMENTS := $(sort $(shell find policies docs -type f) README.md CHANGELOG.md)
UNITS_OF_SYSTEMD := $(sort $(wildcard systemd/*.*))
USER_UNITS       := $(sort $(wildcard systemd/user/*))
man_file  = man$(patsubst .%,%,$(suffix $(1)))/$(notdir $(1))

install: $(BUILD)/toolgate $(MODULE)
	install -D -m 755 $(BUILD)/toolgate $(DESTDIR)$(PREFIX)/bin/toolgate
	$(if $(MODULE),install -D -m 644 $(MODULE) $(DESTDIR)$(LUADIR)/toolgate.so)
	install -D -m 644 docs/types/toolgate.lua $(DESTDIR)$(PREFIX)/share/toolgate/types/toolgate.lua
	for file in $(DOCUMENTS); do install -D -m 644 $$file $(DESTDIR)$(DOCDIR)/$${file#docs/} || exit 1; done
	install -d $(DESTDIR)$(UNITDIR) $(DESTDIR)$(USERUNITDIR) $(DESTDIR)$(BASHDIR) $(DESTDIR)$(ZSHDIR) $(DESTDIR)$(FISHDIR)
	for unit in $(UNITS_OF_SYSTEMD) $(USER_UNITS); do folder=$(UNITDIR); case $$unit in */user/*) folder=$(USERUNITDIR);; esac; \
	    sed 's|/usr/bin/toolgate|$(PREFIX)/bin/toolgate|' $$unit > $(DESTDIR)$$folder/$${unit##*/} || exit 1; done
	for page in $(PAGES); do install -D -m 644 $$page $(DESTDIR)$(MANDIR)/man$${page##*.}/$${page##*/} || exit 1; done
	$(BUILD)/toolgate completion bash > $(DESTDIR)$(BASHDIR)/toolgate
	$(BUILD)/toolgate completion zsh > $(DESTDIR)$(ZSHDIR)/_toolgate
	$(BUILD)/toolgate completion fish > $(DESTDIR)$(FISHDIR)/toolgate.fish

# The files that install wrote. What operators added to these folders stays.
INSTALLED = $(PREFIX)/bin/toolgate $(LUADIR)/toolgate.so $(PREFIX)/share/toolgate/types/toolgate.lua \
            $(DOCUMENTS:%=$(DOCDIR)/%) $(patsubst docs/%,$(DOCDIR)/%,$(filter docs/%,$(DOCUMENTS))) \
            $(UNITS_OF_SYSTEMD:systemd/%=$(UNITDIR)/%) $(USER_UNITS:systemd/user/%=$(USERUNITDIR)/%) $(foreach page,$(PAGES),$(MANDIR)/$(call man_file,$(page))) \
            $(BASHDIR)/toolgate $(ZSHDIR)/_toolgate $(FISHDIR)/toolgate.fish
uninstall:
	rm -f $(INSTALLED:%=$(DESTDIR)%)
	find $(DESTDIR)$(PREFIX)/share/toolgate $(DESTDIR)$(DOCDIR) -depth -type d -empty -delete 2>/dev/null || true

# ---- releases: the tarball and the Debian package; the same source gives the same bytes ----
VERSION := $(shell sed -n 's/^.define TOOLGATE_VERSION "\(.*\)"/\1/p' src/base/version.h)
DIST    := $(BUILD)/toolgate-$(VERSION).tar.gz
# The time of debian/changelog's first entry: a tarball knows it without git.
EPOCH   := $(or $(SOURCE_DATE_EPOCH),$(shell date -d "$$(sed -n 's/^ -- .*>  //p;T;q' debian/changelog)" +%s))

# With git, the files that it tracks, as they are in this folder; without, those of an unpacked tarball.
dist:
	@mkdir -p $(BUILD)
	@{ git ls-files 2>/dev/null | grep . || find . -type f ! -path './build*' ! -path './.git/*' -printf '%P\n'; } \
	    | while read -r file; do [ -e "$$file" ] && echo "$$file"; done | LC_ALL=C sort -u > $(BUILD)/dist.list
	@tar --create --files-from=$(BUILD)/dist.list --transform='s|^|toolgate-$(VERSION)/|' --mtime=@$(EPOCH) --format=gnu \
	    --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX | gzip -9n > $(DIST)
	@echo $(DIST)

deb:
	$(NEED) 'make deb' $(BUILD_PACKAGES) $(DEB_PACKAGES)
	$(ANEW) deb-now

# Builds from the tarball in a folder of its own, so that nothing of a developer's build is in the package.
DEB := $(abspath $(BUILD))/deb
deb-now: dist
	rm -rf $(DEB)
	mkdir -p $(DEB)
	tar -xzf $(DIST) -C $(DEB)
	cd $(DEB)/toolgate-$(VERSION) && env -u MAKEFLAGS -u MAKELEVEL -u BUILD \
	    DEB_BUILD_OPTIONS="parallel=$(shell nproc) $(DEB_BUILD_OPTIONS)" dpkg-buildpackage -us -uc -b
	@ls $(DEB)/*.deb

# ---- the program alone: all but glibc linked in, for any Linux with glibc 2.34 or later (Debian 12, Ubuntu 22.04, RHEL 9) ----
STATIC_PACKAGES := libunistring-dev
STATIC := $(BUILD)/static/toolgate
STATIC_LIBRARIES = $(foreach library,luajit-5.1 event_core hiredis yajl_s pcre2-8 xxhash idn2 unistring seccomp,\
    $(shell $(CC) -print-file-name=lib$(library).a))

static:
	$(NEED) 'make static' $(BUILD_PACKAGES) $(STATIC_PACKAGES)
	$(ANEW) static-now

static-now: $(STATIC)
	@echo "$(STATIC): $$(stat -c %s $(STATIC)) bytes, needs glibc $$(objdump -T $(STATIC) \
	    | sed -n 's/.*GLIBC_\([0-9.]*\).*/\1/p' | sort -Vu | tail -n 1) or later"

$(STATIC): $(BUILD)/obj/cli/main.o $(BUILD)/obj/arc4random.o $(LIBRARY)
	@mkdir -p $(@D)
	$(if $(V),,@echo "  LINK $@")
	$(AT)$(CC) $(CFLAGS) $(LDFLAGS) -s -o $@ $^ $(STATIC_LIBRARIES) -lm

$(BUILD)/obj/arc4random.o: clients/binary/arc4random.c $(BUILD)/flags
	$(AT)$(CC) $(CPPFLAGS) $(CFLAGS) -Wno-missing-prototypes -c -o $@ $<

# ---- the same in a Python wheel and in an npm package, with a libcurl for systems that have none ----
CURL_PACKAGES := dpkg-dev libssl-dev
$(BUILD)/static/libcurl.so.4: clients/binary/libcurl.sh
	$(if $(V),,@echo "  MAKE $@")
	$(AT)sh clients/binary/libcurl.sh $@

wheel npm-package:
	$(NEED) 'make $@' $(BUILD_PACKAGES) $(STATIC_PACKAGES) $(CURL_PACKAGES) python3
	$(ANEW) $@-now

wheel-now npm-package-now: $(STATIC) $(BUILD)/static/libcurl.so.4
	@SOURCE_DATE_EPOCH=$(EPOCH) python3 clients/binary/package.py $(@:-now=) $(VERSION) $(BUILD)/static $(BUILD)

clean:
	rm -rf build build-san build-tsan

-include $(OBJECTS:.o=.d) $(MODULE_OBJECTS:.o=.d) $(BENCH_OBJECTS:.o=.d) $(UNIT_BIN:=.d)
