// The version of the SDK and the command line. The same as the project's in CMakeLists.txt.
#pragma once

namespace gyre {
inline namespace sdk {

/// Major, minor, patch.
inline constexpr char kVersion[] = "0.1.0";

}  // namespace sdk
}  // namespace gyre
