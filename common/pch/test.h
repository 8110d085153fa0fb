// Precompiled for every file of a test, as library.h for the others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/pch/library.h"
