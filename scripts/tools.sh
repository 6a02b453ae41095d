#!/bin/sh
# Install the programs that tests run beside Python: Chromium for the page, and in CI the engines of exports as well.
# Root can do it on Debian and Ubuntu; elsewhere say what is absent.
missing=""
need() { # PACKAGE PROGRAM...: install PACKAGE unless one of the programs is there
    package=$1
    shift
    for program; do
        if command -v "$program" >/dev/null || ls $program >/dev/null 2>&1; then return; fi
    done
    missing="$missing $package"
}

need chromium chromium chromium-browser google-chrome
if [ -n "$CI" ]; then
    need nodejs node
    need npm npm
    need gcc gcc cc
    need default-jre-headless java # PMML, and Spark
    need postgresql initdb "/usr/lib/postgresql/*/bin/initdb"
    need libreoffice-calc-nogui "/usr/lib*/libreoffice/program/libsclo.so" # Writer alone brings soffice, too
fi
if [ -z "$missing" ]; then exit 0; fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    if apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing >/dev/null; then exit 0; fi
fi
echo "Not here, and cannot be installed:$missing. Tests that need them are skipped; in CI, those of exports and of Spark fail."
