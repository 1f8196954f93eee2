// What programs may see of the shared library: everything else in it is hidden.
#pragma once

/// Marks a class or function as part of the library's interface.
#define GYRE_EXPORT __attribute__((visibility("default")))
